//! Extracts public keys from private keys and keysets.

use super::{Error, Keyset};
use crate::secret::Secret;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::PublicKeyData;

/// The public key of a private key (PEM), as DER SubjectPublicKeyInfo.
pub fn public_key(key: &Secret) -> Result<Vec<u8>, Error> {
    Ok(rcgen::KeyPair::from_pem(key.reveal())?.subject_public_key_info())
}

/// Id of the first certificate of a bundle (PEM), as in [`super::KeysetItem`]: its serial number, decimal.
pub fn certificate_id(bundle: &str) -> Option<String> {
    let (_, pem) = x509_parser::pem::parse_x509_pem(bundle.as_bytes()).ok()?;
    let certificate = pem.parse_x509().ok()?;
    Some(certificate.serial.to_string())
}

/// The public keys of all certificates that are not distrusted, oldest first, as concatenated PEM. The API server verifies service
/// account tokens with them.
pub fn public_keys(keyset: &Keyset) -> Result<String, Error> {
    let trusted = keyset.items.iter().filter(|item| item.distrusted.is_none());
    let keys = trusted.map(|item| {
        let unreadable = || Error::Unusable {
            name: keyset.name.clone(),
            source: rcgen::Error::CouldNotParseCertificate,
        };
        let (_, pem) = x509_parser::pem::parse_x509_pem(item.certificate.as_bytes())
            .map_err(|_| unreadable())?;
        let certificate = pem.parse_x509().map_err(|_| unreadable())?;
        Ok(encode_public_key_pem(certificate.public_key().raw))
    });
    keys.collect()
}

fn encode_public_key_pem(der: &[u8]) -> String {
    encode_block("PUBLIC KEY", &STANDARD.encode(der))
}

/// A PEM block of a text in base64.
pub(super) fn encode_block(label: &str, text: &str) -> String {
    let mut pem = format!("-----BEGIN {label}-----\n");
    for (index, character) in text.chars().enumerate() {
        if index > 0 && index % 64 == 0 {
            pem.push('\n');
        }
        pem.push(character);
    }
    pem.push_str("\n-----END ");
    pem.push_str(label);
    pem.push_str("-----\n");
    pem
}
