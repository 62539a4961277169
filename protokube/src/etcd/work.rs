//! Runs blocking work on a member's disk on a separate thread.

use super::Disk;
use super::volumes::HeldVolume;
use anyhow::Context;
use host::Host;

/// A member's disk on this instance.
#[derive(Clone, Debug)]
pub(super) struct OwnDisk {
    host: Host,
    held: HeldVolume,
    prefix: String,
}

impl OwnDisk {
    pub fn new(host: &Host, held: &HeldVolume, prefix: &str) -> Self {
        Self {
            host: host.clone(),
            held: held.clone(),
            prefix: prefix.to_owned(),
        }
    }

    /// The disk as used with the crate `host`.
    pub fn disk(&self) -> Disk<'_> {
        Disk {
            volume: &self.held.volume,
            asked: &self.held.asked,
            prefix: &self.prefix,
        }
    }

    /// Runs work on the disk.
    pub async fn run_on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Host, &Disk<'_>, &HeldVolume) -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<T> {
        let own = self.clone();
        run_blocking(move || work(&own.host, &own.disk(), &own.held)).await
    }
}

/// Runs blocking work on a separate thread.
pub(super) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .context("the thread with work on a disk was aborted")?
}
