//! Files that hold a part of an authority, on control planes.

use super::Error;
use crate::pki::{self, Keyset};
use crate::secret::Secret;
use serde::Serialize;

/// A part of a keyset in a file. Its content is not here: it may be a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeysetFile {
    /// Where.
    pub path: String,
    /// Octal.
    pub mode: String,
    /// The keyset's name; of a secret of the store, the secret's.
    pub keyset: String,
    /// Which part.
    pub part: KeysetPart,
    /// Wanted: the file is what the keyset says.
    pub current: bool,
}

/// A part of a keyset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeysetPart {
    /// Every trusted certificate.
    TrustBundle,
    /// The certificate that signs.
    Certificate,
    /// The key that signs.
    Key,
    /// Every trusted public key.
    PublicKeys,
    /// No keyset: a secret of the store.
    StoredSecret,
}

/// That part of a keyset.
pub fn keyset_part(keyset: &Keyset, part: KeysetPart) -> Result<Secret, Error> {
    let primary = keyset.primary()?;
    Ok(match part {
        KeysetPart::TrustBundle => Secret::new(pki::trust_bundle(keyset)),
        KeysetPart::Certificate => Secret::new(primary.certificate.clone()),
        KeysetPart::PublicKeys => Secret::new(pki::public_keys(keyset)?),
        KeysetPart::Key => {
            let key = primary.key.clone();
            key.ok_or_else(|| pki::Error::NoPrivateKey(keyset.name.clone()))?
        }
        KeysetPart::StoredSecret => return Err(Error::NotInKeyset(keyset.name.clone())),
    })
}
