//! `instancegroups.json`: the texts of all InstanceGroup objects, so that reading a cluster reads this object and not one for each
//! group. It names the version of each text; a group that has changed since, for example by kOps, is read itself.

use super::{StoreKeys, store_error};
use crate::error::{CommandError, ErrorContext};
use aws_client::store::{Entry, Expect, Store, Version};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the file format.
const FORMAT: u32 = 1;

/// The texts of a cluster's groups, as far as the file has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GroupTexts {
    format: u32,
    /// By key.
    groups: BTreeMap<String, GroupText>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct GroupText {
    version: String,
    text: String,
}

impl GroupTexts {
    /// Reads the file. One that cannot be used counts as none: it is derived data.
    pub(super) async fn read(
        store: &Store,
        keys: &StoreKeys,
        entries: &[Entry],
    ) -> Result<Self, CommandError> {
        let key = keys.group_texts();
        if !entries.iter().any(|entry| entry.key == key) {
            return Ok(Self::default());
        }
        let object = store.get(&key).await.map_err(store_error)?;
        let read = object.and_then(|object| serde_json::from_slice::<Self>(&object.bytes).ok());
        Ok(read
            .filter(|file| file.format == FORMAT)
            .unwrap_or_default())
    }

    /// The file for these texts, each with its key and version.
    pub(super) fn from_texts<'a>(
        texts: impl Iterator<Item = (String, &'a Version, &'a str)>,
    ) -> Self {
        let groups = texts.map(|(key, version, text)| {
            let (version, text) = (version.0.clone(), text.to_owned());
            (key, GroupText { version, text })
        });
        Self {
            format: FORMAT,
            groups: groups.collect(),
        }
    }

    /// Takes out the text of a listed object, if it has not changed since the file was written.
    pub(super) fn take(&mut self, entry: &Entry) -> Option<String> {
        let known = self.groups.remove(&entry.key)?;
        (known.version == entry.version.0 && known.text.len() as u64 == entry.size)
            .then_some(known.text)
    }

    /// True if no text is left.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Writes the file. The last writer wins.
    pub(super) async fn write(&self, store: &Store, keys: &StoreKeys) -> Result<(), CommandError> {
        let text = serde_json::to_vec(self).or_failed(
            "the texts of instance groups have no JSON form",
            "report this: it is a defect of kctl",
        )?;
        let put = store.put(&keys.group_texts(), text, Expect::Any).await;
        put.map(drop).map_err(store_error)
    }
}
