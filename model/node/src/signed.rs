//! Signed objects of the state store. protokube does what they say, so whoever may write them, but neither reads nor writes private keys,
//! must not be obeyed: kctl signs them with the keyset `state-signer`, and protokube uses nothing that it has not signed. The signature lies beside the object,
//! under a key with the sha256 of the text: it is written first, so at every moment the object has one, and a listing shows whether it has.

use crate::digest::sha256_hex;
use crate::pki::{Error, Keyset, STATE_SIGNER, sign_message, verify_message};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use time::OffsetDateTime;

/// Format of the signature.
const FORMAT: &str = "v1";

/// Limit of a signature, bytes.
pub const SIGNATURE_LIMIT: usize = 1024;

/// How much later than now a serial may be, seconds: clocks differ. Whoever gets hold of a key once could otherwise sign with a serial that no
/// later one exceeds, and all that kctl signs would count as older.
const AHEAD: u64 = 24 * 60 * 60;

/// True for the serial of a signature that nobody can have made yet. Serials are times in seconds since 1970.
pub fn is_from_future(serial: u64, now: OffsetDateTime) -> bool {
    let now = u64::try_from(now.unix_timestamp()).unwrap_or_default();
    serial > now.saturating_add(AHEAD)
}

/// An object of the state store. A signature counts for one object of one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedPlace<'a> {
    /// Name of the cluster.
    pub cluster: &'a str,
    /// Key relative to the cluster's base: `etcd-backups.json`.
    pub key: &'a str,
}

/// There is no signature of this cluster's keyset for this text in this place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} has no valid signature of the keyset {STATE_SIGNER} of {cluster}")]
pub struct NotSigned {
    key: String,
    cluster: String,
}

/// Key of the signature of a text that is stored at `key`.
pub fn signature_key(key: &str, text: &str) -> String {
    format!("{}{}", signature_prefix(key), sha256_hex(text))
}

/// What the keys of all signatures of an object begin with.
pub fn signature_prefix(key: &str) -> String {
    format!("{key}.sig-")
}

/// The signature of a text. The serial grows with every signature for this place: by it an older text that somebody puts back is known.
pub fn sign_text(
    keyset: &Keyset,
    place: SignedPlace<'_>,
    text: &str,
    serial: u64,
) -> Result<String, Error> {
    let signature = sign_message(keyset, &message(place, serial, text))?;
    Ok(format!(
        "{FORMAT} {serial} {}\n",
        STANDARD.encode(signature)
    ))
}

/// The serial of a signature, if it is one of the keyset for this text in this place.
pub fn verify_text(
    keyset: &Keyset,
    place: SignedPlace<'_>,
    text: &str,
    signature: &str,
) -> Result<u64, NotSigned> {
    let valid = parse_signature(signature)
        .filter(|(serial, signature)| {
            verify_message(keyset, &message(place, *serial, text), signature)
        })
        .map(|(serial, _)| serial);
    valid.ok_or_else(|| NotSigned {
        key: place.key.to_owned(),
        cluster: place.cluster.to_owned(),
    })
}

/// The bytes that are signed. Neither names nor keys have line breaks.
fn message(place: SignedPlace<'_>, serial: u64, text: &str) -> Vec<u8> {
    let SignedPlace { cluster, key } = place;
    format!("kctl signed object {FORMAT}\n{cluster}\n{key}\n{serial}\n{text}").into_bytes()
}

/// Serial and signature.
fn parse_signature(text: &str) -> Option<(u64, Vec<u8>)> {
    let mut words = text.strip_suffix('\n')?.split(' ');
    let (format, serial, signature) = (words.next()?, words.next()?, words.next()?);
    if format != FORMAT || words.next().is_some() {
        return None;
    }
    Some((serial.parse().ok()?, STANDARD.decode(signature).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::{KeyAlgorithm, SystemKeys, mint_keyset};
    use proptest::prelude::*;
    use std::sync::LazyLock;
    use time::Duration;

    fn mint() -> Keyset {
        let now = OffsetDateTime::UNIX_EPOCH + Duration::days(20_000);
        let mut keys = SystemKeys::issuing_at(now);
        mint_keyset(STATE_SIGNER, KeyAlgorithm::EcdsaP256, &mut keys).unwrap()
    }

    static KEYSET: LazyLock<Keyset> = LazyLock::new(mint);

    const PLACE: SignedPlace<'static> = SignedPlace {
        cluster: "a.example.com",
        key: "etcd-backups.json",
    };

    const TEXT: &str = "{\n  \"etcd\": {},\n  \"format\": 1\n}\n";

    #[test]
    fn what_was_signed_is_verified_with_the_public_half() {
        let mut public = KEYSET.clone();
        public.items.iter_mut().for_each(|item| item.key = None);
        let signature = sign_text(&KEYSET, PLACE, TEXT, 7).unwrap();
        assert!(signature.len() < SIGNATURE_LIMIT);
        assert_eq!(verify_text(&public, PLACE, TEXT, &signature), Ok(7));
        assert!(sign_text(&public, PLACE, TEXT, 7).is_err());
    }

    #[test]
    fn a_signature_counts_for_one_object_of_one_cluster_and_while_its_key_is_trusted() {
        let signature = sign_text(&KEYSET, PLACE, TEXT, 7).unwrap();
        let (cluster, key) = ("b.example.com", "addons/bootstrap-channel.yaml");
        for place in [
            SignedPlace { cluster, ..PLACE },
            SignedPlace { key, ..PLACE },
        ] {
            assert!(verify_text(&KEYSET, place, TEXT, &signature).is_err());
        }
        assert!(verify_text(&mint(), PLACE, TEXT, &signature).is_err());
        assert!(verify_text(&KEYSET, PLACE, "", &signature).is_err());
        let mut distrusted = KEYSET.clone();
        distrusted.items[0].distrusted = Some("2026-01-01T00:00:00Z".to_owned());
        assert!(verify_text(&distrusted, PLACE, TEXT, &signature).is_err());
        // After a rotation, the signature of the former key counts until that is distrusted.
        let mut rotated = mint();
        rotated.items.push(KEYSET.items[0].clone());
        assert!(verify_text(&rotated, PLACE, TEXT, &signature).is_ok());
    }

    #[test]
    fn a_serial_may_be_a_day_ahead() {
        let now = OffsetDateTime::UNIX_EPOCH + Duration::days(20_000);
        let at = |day: u64| day * 24 * 60 * 60;
        for (serial, expected) in [
            (0, false),
            (at(20_001), false),
            (at(20_001) + 1, true),
            (u64::MAX, true),
        ] {
            assert_eq!(is_from_future(serial, now), expected, "{serial}");
        }
    }

    proptest! {
        #[test]
        fn no_changed_text_or_serial_is_taken(of_text: bool, at in 0..400_usize, byte: u8, how in 0..3_u8) {
            let signature = sign_text(&KEYSET, PLACE, TEXT, 7).unwrap();
            let changed = |text: &str| {
                let mut bytes = text.as_bytes().to_vec();
                let at = at % bytes.len();
                match how {
                    0 => bytes[at] = byte,
                    1 => bytes.insert(at, byte),
                    _ => bytes.truncate(at),
                }
                String::from_utf8_lossy(&bytes).into_owned()
            };
            if of_text {
                let text = changed(TEXT);
                prop_assume!(text != TEXT);
                prop_assert!(verify_text(&KEYSET, PLACE, &text, &signature).is_err());
            } else if let Ok(serial) = verify_text(&KEYSET, PLACE, TEXT, &changed(&signature)) {
                // Two encodings of one signature are no harm.
                prop_assert_eq!(serial, 7);
            }
        }
    }
}
