//! Keysets: all keys of one authority. One of them signs; all that are not distrusted are trusted.

use super::Error;
use crate::secret::Secret;

/// The keys of one authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyset {
    /// Name, for example `kubernetes-ca`.
    pub name: String,
    /// Id of the item that signs.
    pub primary: String,
    /// All items, oldest first.
    pub items: Vec<KeysetItem>,
}

/// One key of an authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeysetItem {
    /// Serial number of the certificate, decimal.
    pub id: String,
    /// Certificate, PEM.
    pub certificate: String,
    /// Private key, PEM (PKCS#8, PKCS#1 or SEC1); `None` if only the certificate is known.
    pub key: Option<Secret>,
    /// When it was distrusted, RFC 3339.
    pub distrusted: Option<String>,
}

impl Keyset {
    /// The item that signs.
    pub fn primary(&self) -> Result<&KeysetItem, Error> {
        let found = self.items.iter().find(|item| item.id == self.primary);
        found.ok_or_else(|| Error::NoPrimary(self.name.clone()))
    }

    /// Sorts items by id, which is by age because ids begin with the time of creation.
    pub(super) fn sort_items(&mut self) {
        self.items
            .sort_by_key(|item| (item.id.len(), item.id.clone()));
    }
}

/// All certificates that are not distrusted, oldest first, as concatenated PEM.
pub fn trust_bundle(keyset: &Keyset) -> String {
    let trusted = keyset.items.iter().filter(|item| item.distrusted.is_none());
    trusted
        .flat_map(|item| [item.certificate.trim_end(), "\n"])
        .collect()
}
