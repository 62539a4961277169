//! Which keys an instance has certificates for: kept in the state store, so that every control plane knows.

use super::{Certificate, FORMAT, Keys};
use serde::{Deserialize, Serialize};

/// The record of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyRecord {
    /// [`FORMAT`].
    pub format: u32,
    /// sha256 (hex) of the public key of each certificate that was issued.
    pub keys: Keys,
}

impl KeyRecord {
    /// The record after `asked` is answered. `None`: it already says so, and the keys are no new ones.
    pub fn with(before: Option<&Self>, asked: &Keys) -> Option<Self> {
        let mut keys = before.map(|record| record.keys.clone()).unwrap_or_default();
        keys.extend(asked.clone());
        let after = Self {
            format: FORMAT,
            keys,
        };
        (before.map(|record| &record.keys) != Some(&after.keys) && !asked.is_empty())
            .then_some(after)
    }

    /// Whether kubelet's key in `asked` is the recorded one.
    pub fn has_kubelet_of(&self, asked: &Keys) -> bool {
        let recorded = self.keys.get(&Certificate::Kubelet);
        recorded.is_some() && recorded == asked.get(&Certificate::Kubelet)
    }
}

/// Key of an instance's record, relative to the cluster's base in the state store.
pub fn key_record_key(instance: &str) -> String {
    format!("nodes/{instance}.key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_changes_with_new_keys_only() {
        let asked = |key: &str| Keys::from([(Certificate::Kubelet, key.to_owned())]);
        let first = KeyRecord::with(None, &asked("1")).unwrap();
        assert_eq!(KeyRecord::with(Some(&first), &asked("1")), None);
        let second = KeyRecord::with(Some(&first), &asked("2")).unwrap();
        assert_eq!(second.keys, asked("2"));
        let proxy = Keys::from([(Certificate::KubeProxy, "3".to_owned())]);
        let both = KeyRecord::with(Some(&second), &proxy).unwrap();
        assert_eq!(both.keys.len(), 2);
        assert_eq!(KeyRecord::with(Some(&both), &asked("2")), None);
        assert_eq!(KeyRecord::with(None, &Keys::new()), None);
        assert!(both.has_kubelet_of(&asked("2")) && !both.has_kubelet_of(&asked("1")));
        let none = KeyRecord::with(None, &proxy).unwrap();
        assert!(!none.has_kubelet_of(&proxy), "none is nobody's");
    }
}
