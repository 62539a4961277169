//! The folder on the root disk in which a snapshot is verified.

use super::root_disk::check_room;
use super::source::SnapshotSource;
use super::take::SnapshotTaker;
use crate::{EtcdContainers, LOG_FILE};
use host::Host;
use std::path::PathBuf;
use std::time::Duration;

/// Name of the file with the snapshot in the folder.
pub(super) const FILE: &str = "snapshot.db";

/// Name of the compressed file.
pub(super) const PACKED: &str = "snapshot.gz";

/// The folder.
#[derive(Clone, Debug)]
pub(super) struct WorkFolder {
    host: Host,
    work: String,
    image: String,
    encryption_config: Option<String>,
    interval: Duration,
}

impl<S: SnapshotSource> SnapshotTaker<S> {
    pub(super) fn work_folder(&self) -> WorkFolder {
        WorkFolder {
            host: self.host.clone(),
            work: self.work.clone(),
            image: self.image.clone(),
            encryption_config: self.encryption_config.clone(),
            interval: self.interval,
        }
    }
}

impl WorkFolder {
    fn path(&self) -> String {
        format!("/var/lib/kctl/etcd-backup/{}", self.work)
    }

    /// Path of a file in it, on the host.
    pub(super) fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path())
    }

    /// Path of a file in it, for this process.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.host.path_below_root(&self.path_of(name))
    }

    /// The API server's EncryptionConfiguration, if it has one.
    pub(super) fn read_encryption_config(&self) -> anyhow::Result<Option<String>> {
        let path = self.encryption_config.as_ref();
        let text = path.map(|path| self.host.read_text(path)).transpose()?;
        Ok(text.flatten())
    }

    /// Removes a file in it.
    pub(super) fn remove_file(&self, name: &str) -> anyhow::Result<()> {
        Ok(self.host.remove_file(&self.path_of(name))?)
    }

    /// Containers with at most this memory, in bytes.
    pub(super) fn containers(&self, memory: u64) -> EtcdContainers<'_> {
        // The containers of a recovery have other names.
        let name = format!("{}-backup", self.work);
        let names = (self.image.as_str(), name.as_str());
        EtcdContainers::new(&self.host, names, self.interval, &self.path()).limited_to(memory)
    }

    /// Empties it, and checks that there is room for a database of this size.
    pub(super) fn prepare(&self, bytes: u64) -> anyhow::Result<()> {
        self.prepare_for(bytes, 0)
    }

    /// The same, with so many bytes more for changes that are replayed.
    pub(super) fn prepare_for(&self, bytes: u64, changes: u64) -> anyhow::Result<()> {
        self.containers(0).remove_all();
        self.remove()?;
        self.host.make_folder(&self.path(), 0o700)?;
        // The file, the compressed one, and the scratch etcd's data and log.
        let needed = bytes.saturating_mul(3).saturating_add(2 * LOG_FILE);
        let needed = needed.saturating_add(changes);
        check_room(&self.host, &self.path(), needed, "a verified snapshot")
    }

    /// Checks that there is room for so many bytes of changes.
    pub(super) fn check_room(&self, bytes: u64) -> anyhow::Result<()> {
        let what = "a drill that replays changes";
        check_room(&self.host, &self.path(), bytes, what)
    }

    pub(super) fn remove(&self) -> anyhow::Result<()> {
        Ok(self.host.remove_folder(&self.path())?)
    }
}
