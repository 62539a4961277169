//! Signs messages with a keyset, and verifies them.

use super::{Error, Keyset};
use rcgen::{KeyPair, SigningKey};
use x509_parser::asn1_rs::BitString;
use x509_parser::verify::verify_signature;

/// The signature of the keyset's primary key.
pub fn sign_message(keyset: &Keyset, message: &[u8]) -> Result<Vec<u8>, Error> {
    let unusable = |source| Error::Unusable {
        name: keyset.name.clone(),
        source,
    };
    let key = keyset.primary()?.key.as_ref();
    let key = key.ok_or_else(|| Error::NoPrivateKey(keyset.name.clone()))?;
    let key = KeyPair::from_pem(key.reveal()).map_err(unusable)?;
    key.sign(message).map_err(unusable)
}

/// True if one of the keyset's certificates that are not distrusted has signed the message.
pub fn verify_message(keyset: &Keyset, message: &[u8], signature: &[u8]) -> bool {
    let mut trusted = keyset.items.iter().filter(|item| item.distrusted.is_none());
    trusted.any(|item| is_signed_by(&item.certificate, message, signature))
}

fn is_signed_by(certificate: &str, message: &[u8], signature: &[u8]) -> bool {
    let Ok((_, pem)) = x509_parser::pem::parse_x509_pem(certificate.as_bytes()) else {
        return false;
    };
    let Ok(certificate) = pem.parse_x509() else {
        return false;
    };
    // The certificate is signed by its own key, so its algorithm is the key's.
    verify_signature(
        certificate.public_key(),
        &certificate.signature_algorithm,
        &BitString::new(0, signature),
        message,
    )
    .is_ok()
}
