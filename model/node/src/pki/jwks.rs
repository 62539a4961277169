//! The public keys of a keyset as a JSON Web Key Set (RFC 7517): with these, others than the API server verify tokens of service accounts.

use super::{Error, Keyset, KeysetItem};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use x509_parser::public_key::PublicKey;

/// Keys, sorted by id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JsonWebKeySet {
    pub keys: Vec<JsonWebKey>,
}

/// A key that verifies signatures of kube-apiserver. STS takes these algorithms (SDK of STS, `WebIdentityToken`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JsonWebKey {
    #[serde(rename = "use")]
    pub usage: String,
    /// The id that kube-apiserver writes into tokens: sha256 of the key as DER, in base64.
    pub kid: String,
    /// `RS256`, `ES256`, `ES384` or `ES512`.
    pub alg: String,
    #[serde(flatten)]
    pub material: KeyMaterial,
}

/// The numbers of a key, big-endian, in base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kty")]
pub enum KeyMaterial {
    #[serde(rename = "RSA")]
    Rsa { n: String, e: String },
    #[serde(rename = "EC")]
    Ec { crv: String, x: String, y: String },
}

impl JsonWebKeySet {
    /// The keys of all certificates that are not distrusted.
    pub fn from_keyset(keyset: &Keyset) -> Result<Self, Error> {
        Self::from_items(keyset, |item| item.distrusted.is_none())
    }

    /// The keys of all certificates, also of those that are distrusted: what has one of them is the cluster's.
    pub fn ever_trusted(keyset: &Keyset) -> Result<Self, Error> {
        Self::from_items(keyset, |_| true)
    }

    fn from_items(keyset: &Keyset, takes: fn(&KeysetItem) -> bool) -> Result<Self, Error> {
        let items = keyset.items.iter().filter(|item| takes(item));
        let keys = items.map(|item| {
            read_key(&item.certificate).ok_or_else(|| Error::NotForTokens {
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
            kid: id.to_owned(),
            alg: String::new(),
            material: KeyMaterial::Rsa {
                n: String::new(),
                e: String::new(),
            },
        };
        Self { keys: vec![key] }
    }

    /// The algorithms of the keys, each once.
    pub fn algorithms(&self) -> BTreeSet<&str> {
        self.keys.iter().map(|key| key.alg.as_str()).collect()
    }

    /// True if one of the keys has that id.
    pub fn has_key(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.kid == id)
    }
}

/// The key of a certificate (PEM); `None` if kube-apiserver does not sign with such a key.
fn read_key(certificate: &str) -> Option<JsonWebKey> {
    let (_, pem) = x509_parser::pem::parse_x509_pem(certificate.as_bytes()).ok()?;
    let certificate = pem.parse_x509().ok()?;
    let key = certificate.public_key();
    let (alg, material) = match key.parsed().ok()? {
        PublicKey::RSA(rsa) => ("RS256", rsa_material(rsa.modulus, rsa.exponent)),
        PublicKey::EC(point) => ec_material(point.data())?,
        _ => return None,
    };
    Some(JsonWebKey {
        usage: "sig".to_owned(),
        kid: URL_SAFE_NO_PAD.encode(Sha256::digest(key.raw)),
        alg: alg.to_owned(),
        material,
    })
}

fn rsa_material(modulus: &[u8], exponent: &[u8]) -> KeyMaterial {
    let number = |bytes: &[u8]| {
        let first = bytes.iter().position(|byte| *byte != 0);
        URL_SAFE_NO_PAD.encode(bytes.get(first.unwrap_or_default()..).unwrap_or_default())
    };
    KeyMaterial::Rsa {
        n: number(modulus),
        e: number(exponent),
    }
}

/// Algorithm and key of an uncompressed point (SEC 1, 2.3.3): a byte 4, then two coordinates.
fn ec_material(point: &[u8]) -> Option<(&'static str, KeyMaterial)> {
    let (4, coordinates) = point.split_first()? else {
        return None;
    };
    let (x, y) = coordinates.split_at_checked(coordinates.len() / 2)?;
    let (alg, crv) = match (x.len(), y.len()) {
        (32, 32) => ("ES256", "P-256"),
        (48, 48) => ("ES384", "P-384"),
        (66, 66) => ("ES512", "P-521"),
        _ => return None,
    };
    let material = KeyMaterial::Ec {
        crv: crv.to_owned(),
        x: URL_SAFE_NO_PAD.encode(x),
        y: URL_SAFE_NO_PAD.encode(y),
    };
    Some((alg, material))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `openssl req -x509 -newkey rsa:2048`, and its key by `openssl x509 -pubkey`, digested and encoded by openssl and basenc.
    const CERTIFICATE: &str = include_str!("jwks_test.pem");
    const KEY_ID: &str = "276sZFER3xPJ-qFgpMy-FZH-_r2q9qBMBgMRjU9tHiQ";
    const MODULUS: &str = "qaDfKBbVTxKYez9jcm2VCbBcHl-pxj2ZhIxTiR3TGWleAU2NW6SQAkh5WCcCtCD6Z6mLR857nhMj2_-2tb3UWFPD5fQakuiK5nGPYSd689zYGtSiEF9cHe6iN_zl5Qv81lz2SpIxKoGZYav_H5HBLJR15w6VuI36UB68GOvhPJLGc4Cfd02GIGaLDAXZ1O0XDmjF7ZiFjaxFnOF8JwyhbgPw6yHWm-V7L-9OW46D8zhea_rUfNWzAKBru97_RJ4eeysoF30IT0c0iY_Ym3kjmYJshItPufVIyxvlpUOrtatMvb8JvCqnEjBpBnyU2vJcTg7zpeiugeCSwVtgK47rAQ";

    /// The same of `-newkey ec`.
    const EC_CERTIFICATE: &str = include_str!("jwks_ec_test.pem");
    const EC_KEY_ID: &str = "tuV2neZKLDlGWH9FNMVsMPNad_uq6oo0dLu1GXKYXSo";
    const POINT: [&str; 2] = [
        "_ZSRU84txiPT7TH5VeuEig3BF8M90Gt3RyISErKzxDI",
        "1EsJS7pEhMVX9g3d9FDszw1ncMXLWSF7AeNjbFEx9_Q",
    ];

    fn keyset(certificate: &str, distrusted: Option<&str>) -> Keyset {
        Keyset {
            name: "service-account".to_owned(),
            primary: "1".to_owned(),
            items: vec![KeysetItem {
                id: "1".to_owned(),
                certificate: certificate.to_owned(),
                key: None,
                distrusted: distrusted.map(str::to_owned),
            }],
        }
    }

    #[test]
    fn a_key_is_as_openssl_reads_it() {
        let set = JsonWebKeySet::from_keyset(&keyset(CERTIFICATE, None)).unwrap();
        let [key] = set.keys.as_slice() else {
            panic!("{set:?}")
        };
        let (n, e) = (MODULUS.to_owned(), "AQAB".to_owned());
        assert_eq!((key.kid.as_str(), key.alg.as_str()), (KEY_ID, "RS256"));
        assert_eq!(key.material, KeyMaterial::Rsa { n, e });
        assert!(set.has_key(KEY_ID));
        let set = JsonWebKeySet::from_keyset(&keyset(EC_CERTIFICATE, None)).unwrap();
        let [x, y] = POINT;
        let expected = serde_json::json!({"keys": [{"use": "sig", "kid": EC_KEY_ID, "alg": "ES256", "kty": "EC",
            "crv": "P-256", "x": x, "y": y}]});
        assert_eq!(serde_json::to_value(&set).unwrap(), expected);
        assert_eq!(
            serde_json::from_value::<JsonWebKeySet>(expected).unwrap(),
            set
        );
    }

    #[test]
    fn a_distrusted_key_is_not_published() {
        let set =
            JsonWebKeySet::from_keyset(&keyset(CERTIFICATE, Some("2026-01-01T00:00:00Z"))).unwrap();
        assert_eq!(set.keys, []);
        let all = keyset(CERTIFICATE, Some("2026-01-01T00:00:00Z"));
        assert!(JsonWebKeySet::ever_trusted(&all).unwrap().has_key(KEY_ID));
    }
}
