//! `object-digests.json`: what objects of the store hold that `update` writes, by version, so that a plan need not read them. Only in a
//! bucket that encrypts with KMS keys: elsewhere the version says it. Derived data.

use super::{StoreKeys, store_error};
use crate::error::{CommandError, ErrorContext};
use aws_client::store::{Digests, Entry, Expect, Store};
use serde::{Deserialize, Serialize};

/// Version of the file format.
const FORMAT: u32 = 1;

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct DigestsFile {
    format: u32,
    /// Version and sha256 by key.
    objects: Digests,
}

/// The digests in the file.
#[derive(Clone, Debug, Default)]
pub struct ObjectDigests {
    stored: Digests,
}

impl ObjectDigests {
    /// Reads the file, and tells the store what it says. One that cannot be used counts as none.
    pub async fn read(
        store: &Store,
        keys: &StoreKeys,
        entries: &[Entry],
    ) -> Result<Self, CommandError> {
        let key = keys.object_digests();
        if !entries.iter().any(|entry| entry.key == key) {
            return Ok(Self::default());
        }
        let object = store.get(&key).await.map_err(store_error)?;
        let file =
            object.and_then(|object| serde_json::from_slice::<DigestsFile>(&object.bytes).ok());
        let file = file.filter(|file| file.format == FORMAT);
        let stored = file.map(|file| file.objects).unwrap_or_default();
        store.load_digests(stored.clone());
        Ok(Self { stored })
    }

    /// Writes what the store knows now, if that is something else. Needs the lock.
    pub async fn write_changed(&self, store: &Store, keys: &StoreKeys) -> Result<(), CommandError> {
        let objects = store.used_digests();
        if objects == self.stored {
            return Ok(());
        }
        let file = DigestsFile {
            format: FORMAT,
            objects,
        };
        let bytes = serde_json::to_vec(&file).or_failed(
            "the digests of objects have no JSON form",
            "report this: it is a defect of kctl",
        )?;
        let put = store.put(&keys.object_digests(), bytes, Expect::Any).await;
        put.map(drop).map_err(store_error)
    }
}
