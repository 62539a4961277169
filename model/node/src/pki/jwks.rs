//! The public keys of a keyset as a JSON Web Key Set (RFC 7517): with these, others than the API server verify tokens of service accounts.

use super::{Error, Keyset};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use x509_parser::public_key::PublicKey;

/// Keys, sorted by id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JsonWebKeySet {
    pub keys: Vec<JsonWebKey>,
}

/// An RSA key that verifies signatures of RS256, with which kube-apiserver signs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JsonWebKey {
    #[serde(rename = "use")]
    pub usage: String,
    pub kty: String,
    /// The id that kube-apiserver writes into tokens: sha256 of the key as DER, in base64.
    pub kid: String,
    pub alg: String,
    /// Modulus and exponent, big-endian, in base64.
    pub n: String,
    pub e: String,
}

impl JsonWebKeySet {
    /// The keys of all certificates that are not distrusted.
    pub fn from_keyset(keyset: &Keyset) -> Result<Self, Error> {
        let trusted = keyset.items.iter().filter(|item| item.distrusted.is_none());
        let keys = trusted.map(|item| {
            read_key(&item.certificate).ok_or_else(|| Error::NotRsa {
                name: keyset.name.clone(),
                id: item.id.clone(),
            })
        });
        let mut keys: Vec<JsonWebKey> = keys.collect::<Result<_, _>>()?;
        keys.sort_by(|one, other| one.kid.cmp(&other.kid));
        Ok(Self { keys })
    }

    /// A set in whose place keys come that do not exist yet.
    pub fn stand_in(id: &str) -> Self {
        let key = JsonWebKey {
            usage: "sig".to_owned(),
            kty: "RSA".to_owned(),
            kid: id.to_owned(),
            alg: "RS256".to_owned(),
            n: String::new(),
            e: String::new(),
        };
        Self { keys: vec![key] }
    }

    /// True if both have a key in common.
    pub fn shares_key(&self, other: &Self) -> bool {
        let ids = other.keys.iter().map(|key| &key.kid);
        let ids: Vec<&String> = ids.collect();
        self.keys.iter().any(|key| ids.contains(&&key.kid))
    }
}

/// The key of a certificate (PEM); `None` if it is no RSA key.
fn read_key(certificate: &str) -> Option<JsonWebKey> {
    let (_, pem) = x509_parser::pem::parse_x509_pem(certificate.as_bytes()).ok()?;
    let certificate = pem.parse_x509().ok()?;
    let key = certificate.public_key();
    let PublicKey::RSA(rsa) = key.parsed().ok()? else {
        return None;
    };
    let number = |bytes: &[u8]| {
        let first = bytes.iter().position(|byte| *byte != 0);
        URL_SAFE_NO_PAD.encode(bytes.get(first.unwrap_or_default()..).unwrap_or_default())
    };
    Some(JsonWebKey {
        usage: "sig".to_owned(),
        kty: "RSA".to_owned(),
        kid: URL_SAFE_NO_PAD.encode(Sha256::digest(key.raw)),
        alg: "RS256".to_owned(),
        n: number(rsa.modulus),
        e: number(rsa.exponent),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::KeysetItem;

    /// `openssl req -x509 -newkey rsa:2048`, and its key by `openssl x509 -pubkey`, digested and encoded by openssl and basenc.
    const CERTIFICATE: &str = include_str!("jwks_test.pem");
    const KEY_ID: &str = "276sZFER3xPJ-qFgpMy-FZH-_r2q9qBMBgMRjU9tHiQ";
    const MODULUS: &str = "qaDfKBbVTxKYez9jcm2VCbBcHl-pxj2ZhIxTiR3TGWleAU2NW6SQAkh5WCcCtCD6Z6mLR857nhMj2_-2tb3UWFPD5fQakuiK5nGPYSd689zYGtSiEF9cHe6iN_zl5Qv81lz2SpIxKoGZYav_H5HBLJR15w6VuI36UB68GOvhPJLGc4Cfd02GIGaLDAXZ1O0XDmjF7ZiFjaxFnOF8JwyhbgPw6yHWm-V7L-9OW46D8zhea_rUfNWzAKBru97_RJ4eeysoF30IT0c0iY_Ym3kjmYJshItPufVIyxvlpUOrtatMvb8JvCqnEjBpBnyU2vJcTg7zpeiugeCSwVtgK47rAQ";

    fn keyset(distrusted: Option<&str>) -> Keyset {
        Keyset {
            name: "service-account".to_owned(),
            primary: "1".to_owned(),
            items: vec![KeysetItem {
                id: "1".to_owned(),
                certificate: CERTIFICATE.to_owned(),
                key: None,
                distrusted: distrusted.map(str::to_owned),
            }],
        }
    }

    #[test]
    fn a_key_is_as_openssl_reads_it() {
        let set = JsonWebKeySet::from_keyset(&keyset(None)).unwrap();
        let [key] = set.keys.as_slice() else {
            panic!("{set:?}")
        };
        assert_eq!((key.kid.as_str(), key.n.as_str()), (KEY_ID, MODULUS));
        assert_eq!((key.e.as_str(), key.alg.as_str()), ("AQAB", "RS256"));
        assert!(set.shares_key(&set));
    }

    #[test]
    fn a_distrusted_key_is_not_published() {
        let set = JsonWebKeySet::from_keyset(&keyset(Some("2026-01-01T00:00:00Z"))).unwrap();
        assert_eq!(set.keys, []);
    }
}
