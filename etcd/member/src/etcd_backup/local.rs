//! Snapshots in a folder of this instance, with the layout of a backup store.

use crate::backup::check_room;
use anyhow::Context;
use aws_client::Clients;
use aws_client::store::Store;
use host::Host;
use std::path::PathBuf;

/// The folder.
#[derive(Clone, Debug)]
pub struct LocalSnapshots {
    /// The folder as a store.
    pub store: Store,
    host: Host,
    /// On the host.
    folder: String,
}

impl LocalSnapshots {
    /// The snapshots in this folder of the host, an absolute path. Reads nothing yet.
    pub async fn open(host: &Host, folder: &str) -> anyhow::Result<Self> {
        let address = format!("file://{}", host.path_below_root(folder).display());
        let store = Store::open(&address, &Clients::load(None, None).await);
        Ok(Self {
            store: store.with_context(|| format!("{folder} is no folder for snapshots"))?,
            host: host.clone(),
            folder: folder.to_owned(),
        })
    }

    /// Path of the object with that key.
    pub(super) fn path_of(&self, key: &str) -> PathBuf {
        self.host.path_below_root(&format!("{}/{key}", self.folder))
    }

    /// Checks that a snapshot of so many bytes can be downloaded: it is copied once it is complete.
    pub(super) fn check_room(&self, name: &str, bytes: u64) -> anyhow::Result<()> {
        self.host.make_folder(&self.folder, 0o700)?;
        let there = self
            .partial_path(name)
            .metadata()
            .map_or(0, |data| data.len());
        let needed = bytes.saturating_mul(2).saturating_sub(there);
        check_room(&self.host, &self.folder, needed, "the download")
    }

    /// Path under which a snapshot is downloaded. No listing of the store shows it, and an interrupted download goes on with it.
    pub(super) fn partial_path(&self, name: &str) -> PathBuf {
        self.path_of(&format!(".kctl-download-{name}"))
    }
}
