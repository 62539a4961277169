//! The record of the keys for which an instance has certificates. It is in the state store, so that all control planes share it.

use super::{CertificateKind, FORMAT, KeyDigests};
use serde::{Deserialize, Serialize};

/// The key record of one instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyRecord {
    /// [`FORMAT`].
    pub format: u32,
    /// sha256 (hex) of the public key of each certificate that was issued.
    pub keys: KeyDigests,
}

impl KeyRecord {
    /// The record with the keys of `asked` added; `None` if it has them already.
    pub fn with_keys(before: Option<&Self>, asked: &KeyDigests) -> Option<Self> {
        let mut keys = before.map(|record| record.keys.clone()).unwrap_or_default();
        keys.extend(asked.clone());
        let after = Self {
            format: FORMAT,
            keys,
        };
        (before.map(|record| &record.keys) != Some(&after.keys) && !asked.is_empty())
            .then_some(after)
    }

    /// True if kubelet's key in `asked` is the recorded one.
    pub fn has_kubelet_key(&self, asked: &KeyDigests) -> bool {
        let recorded = self.keys.get(&CertificateKind::Kubelet);
        recorded.is_some() && recorded == asked.get(&CertificateKind::Kubelet)
    }
}

/// Key of an instance's key record, relative to the cluster's base in the state store.
pub fn key_record_key(instance: &str) -> String {
    format!("nodes/{instance}.key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_changes_with_new_keys_only() {
        let asked = |key: &str| KeyDigests::from([(CertificateKind::Kubelet, key.to_owned())]);
        let first = KeyRecord::with_keys(None, &asked("1")).unwrap();
        assert_eq!(KeyRecord::with_keys(Some(&first), &asked("1")), None);
        let second = KeyRecord::with_keys(Some(&first), &asked("2")).unwrap();
        assert_eq!(second.keys, asked("2"));
        let proxy = KeyDigests::from([(CertificateKind::KubeProxy, "3".to_owned())]);
        let both = KeyRecord::with_keys(Some(&second), &proxy).unwrap();
        assert_eq!(both.keys.len(), 2);
        assert_eq!(KeyRecord::with_keys(Some(&both), &asked("2")), None);
        assert_eq!(KeyRecord::with_keys(None, &KeyDigests::new()), None);
        assert!(both.has_kubelet_key(&asked("2")) && !both.has_kubelet_key(&asked("1")));
        let none = KeyRecord::with_keys(None, &proxy).unwrap();
        assert!(!none.has_kubelet_key(&proxy), "none is nobody's");
    }
}
