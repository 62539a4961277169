//! Snapshots in a folder of this instance, with the layout of a backup store.

use anyhow::Context;
use aws_client::Clients;
use aws_client::store::Store;
use std::path::{Path, PathBuf};

/// The folder.
#[derive(Clone, Debug)]
pub struct LocalSnapshots {
    /// The folder as a store.
    pub store: Store,
    folder: PathBuf,
}

impl LocalSnapshots {
    /// The snapshots in this folder, an absolute path. Reads nothing yet.
    pub async fn open(folder: &Path) -> anyhow::Result<Self> {
        let address = format!("file://{}", folder.display());
        let store = Store::open(&address, &Clients::load(None, None).await);
        Ok(Self {
            store: store
                .with_context(|| format!("{} is no folder for snapshots", folder.display()))?,
            folder: folder.to_owned(),
        })
    }

    /// Path of the object with that key.
    pub(super) fn path_of(&self, key: &str) -> PathBuf {
        self.folder.join(key)
    }

    /// Path under which a snapshot is downloaded. No listing of the store shows it, and an interrupted download goes on with it.
    pub(super) fn partial_path(&self, name: &str) -> PathBuf {
        self.folder.join(format!(".kctl-download-{name}"))
    }
}
