//! Work on a member's disk, which may take its time and is done where waiting hurts nobody.

use super::Disk;
use super::volumes::Held;
use anyhow::Context;
use host::Host;

/// A member's disk on this machine.
#[derive(Clone, Debug)]
pub(super) struct OwnDisk {
    host: Host,
    held: Held,
    prefix: String,
}

impl OwnDisk {
    pub fn new(host: &Host, held: &Held, prefix: &str) -> Self {
        Self {
            host: host.clone(),
            held: held.clone(),
            prefix: prefix.to_owned(),
        }
    }

    /// As the host knows it.
    pub fn disk(&self) -> Disk<'_> {
        Disk {
            volume: &self.held.volume,
            asked: &self.held.asked,
            prefix: &self.prefix,
        }
    }

    /// Does it.
    pub async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Host, &Disk<'_>, &Held) -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<T> {
        let own = self.clone();
        blocking(move || work(&own.host, &own.disk(), &own.held)).await
    }
}

/// What blocks, elsewhere.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .context("work on a disk was given up")?
}
