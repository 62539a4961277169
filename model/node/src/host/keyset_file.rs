//! Files with a part of a keyset, on control planes.

use super::Error;
use crate::pki::{self, Keyset};
use crate::secret::Secret;
use serde::Serialize;

/// A file with a part of a keyset. The content is not included, because it may be a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeysetFile {
    /// Absolute path.
    pub path: String,
    /// Mode in octal.
    pub mode: String,
    /// Name of the keyset, or of the secret for [`KeysetPart::StoredSecret`].
    pub keyset: String,
    /// Part in the file.
    pub part: KeysetPart,
    /// True if the file has the content of the keyset; always true in the desired state.
    pub current: bool,
}

/// A part of a keyset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeysetPart {
    /// All trusted certificates.
    TrustBundle,
    /// The certificate that signs.
    Certificate,
    /// The key that signs.
    Key,
    /// All trusted public keys.
    PublicKeys,
    /// Not a keyset: a secret of the state store.
    StoredSecret,
}

/// Returns a part of a keyset as file content.
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
