//! Runs blocking work on a member's disk on a separate thread.

use super::EtcdDisk;
use super::volumes::AttachedVolume;
use anyhow::{Context, bail};
use host::Host;

/// A member's disk on this instance.
#[derive(Clone, Debug)]
pub(super) struct DiskWorker {
    host: Host,
    volume: AttachedVolume,
    prefix: String,
}

impl DiskWorker {
    pub(crate) fn new(host: &Host, volume: &AttachedVolume, prefix: &str) -> Self {
        Self {
            host: host.clone(),
            volume: volume.clone(),
            prefix: prefix.to_owned(),
        }
    }

    /// The disk as used with the crate `host`.
    pub(crate) fn disk(&self) -> EtcdDisk<'_> {
        EtcdDisk {
            volume: &self.volume.volume,
            requested_device: &self.volume.requested_device,
            prefix: &self.prefix,
        }
    }

    /// Fails if the disk is not mounted: what is written for it would be on the root disk.
    pub(crate) async fn require_mounted(&self) -> anyhow::Result<()> {
        let require = |host: &Host, disk: &EtcdDisk<'_>, volume: &AttachedVolume| {
            if !disk.is_mounted(host, &volume.device)? {
                bail!("{} is not mounted any more", disk.volume);
            }
            Ok(())
        };
        self.run_on_disk(require).await
    }

    /// Runs work on the disk.
    pub(crate) async fn run_on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Host, &EtcdDisk<'_>, &AttachedVolume) -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<T> {
        let own = self.clone();
        run_blocking(move || work(&own.host, &own.disk(), &own.volume)).await
    }
}

/// Runs blocking work on a separate thread.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .context("the thread with work on a disk was aborted")?
}
