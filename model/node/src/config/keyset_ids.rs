//! Which keys an instance has, by their ids. NodeConfig says it of keysets that were rotated, so each stage of a rotation is another
//! NodeConfig, and instances that lag behind are known.

use super::{NodeConfig, Role};
use crate::pki::{KUBERNETES_CA, Keyset, keyset_names};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The keys of a keyset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeysetIds {
    /// Id of the key that signs.
    pub primary: String,
    /// Ids of the keys that are trusted, oldest first.
    pub trusted: Vec<String>,
}

impl NodeConfig {
    /// Names of the keysets whose keys or certificates the instances have, sorted.
    pub fn used_keysets(&self) -> Vec<String> {
        let etcd = |of: &'_ super::ControlPlane| -> Vec<String> {
            of.etcd.iter().map(|etcd| etcd.name.clone()).collect()
        };
        match (&self.control_plane, self.role) {
            (Some(control_plane), _) => {
                keyset_names(etcd(control_plane).iter().map(String::as_str))
            }
            (None, Role::Bastion) => Vec::new(),
            (None, _) => vec![KUBERNETES_CA.to_owned()],
        }
    }

    /// The ids of those of the keysets that have more than one key, by name: those that never had another one say nothing, so the first
    /// rotation changes NodeConfigs, and no release of kctl does.
    pub fn rotated_keysets(&self, keysets: &[Keyset]) -> BTreeMap<String, KeysetIds> {
        let used = self.used_keysets();
        let rotated = keysets
            .iter()
            .filter(|keyset| keyset.items.len() > 1 && used.contains(&keyset.name));
        rotated
            .map(|keyset| (keyset.name.clone(), keyset.ids()))
            .collect()
    }

    /// The keys of a keyset that the instances have; `None`: they use no such keyset. Without a word about it, the keyset had only its oldest
    /// key.
    pub fn held_ids(&self, keyset: &Keyset) -> Option<KeysetIds> {
        if !self.used_keysets().contains(&keyset.name) {
            return None;
        }
        let oldest = || keyset.items.first().map(|item| item.id.clone());
        let mut ids = self.keysets.get(&keyset.name).cloned().unwrap_or_else(|| {
            let oldest = oldest().unwrap_or_default();
            KeysetIds {
                primary: oldest.clone(),
                trusted: vec![oldest],
            }
        });
        if keyset.name == KUBERNETES_CA {
            // The certificates themselves are in NodeConfig.
            let items = keyset.items.iter();
            let held = items.filter(|item| self.ca_certificates.contains(item.certificate.trim()));
            ids.trusted = held.map(|item| item.id.clone()).collect();
        }
        Some(ids)
    }

    /// A keyset of the state store as the instances have it: each has the keys of its NodeConfig, whatever stage the store is at.
    #[must_use]
    pub fn held_keys(&self, keyset: Keyset) -> Keyset {
        match self.held_ids(&keyset) {
            Some(ids) => keyset.as_of(&ids),
            None => keyset,
        }
    }
}
