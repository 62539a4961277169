//! Decrypts Secrets of a snapshot as the API server would: a restored cluster whose Secrets cannot be read is not restored.

use anyhow::{Context, bail};
use aws_client::fips;
use aws_lc_rs::aead::{AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crypto_secretbox::aead::Aead;
use crypto_secretbox::{KeyInit, XSalsa20Poly1305};
use serde::Deserialize;
use std::collections::BTreeMap;

/// First bytes of an object that the API server stores in its own format (apimachinery: `protobuf.Serializer`).
const PROTOBUF: &[u8] = b"k8s\0";

/// First bytes of an encrypted one (apiserver: `encryptionconfig/config.go`).
const ENCRYPTED: &[u8] = b"k8s:enc:";

const IV: usize = 16;
const GCM_NONCE: usize = 12;
const SECRETBOX_NONCE: usize = 24;

/// EncryptionConfiguration of the API server.
#[derive(Debug, Deserialize)]
struct Configuration {
    #[serde(default)]
    resources: Vec<Resources>,
}

#[derive(Debug, Deserialize)]
struct Resources {
    #[serde(default)]
    providers: Vec<Provider>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Provider {
    aescbc: Keys,
    aesgcm: Keys,
    secretbox: Keys,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Keys {
    keys: Vec<Key>,
}

/// No `Debug`: it is a secret.
#[derive(Deserialize)]
struct Key {
    name: String,
    /// Base64.
    secret: String,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The kinds of Secrets in a snapshot: by which key of which provider they are encrypted. Each Secret is tried: two keys may have one name,
/// and the Secrets of both look alike.
pub(super) struct SecretKinds<'a> {
    configuration: Option<&'a str>,
    /// By the beginning of the values: how they can be read, or the first that cannot.
    tried: BTreeMap<Vec<u8>, Result<String, String>>,
}

impl<'a> SecretKinds<'a> {
    pub(super) fn new(configuration: Option<&'a str>) -> Self {
        Self {
            configuration,
            tried: BTreeMap::new(),
        }
    }

    /// Tries a Secret with this key and value in etcd.
    pub(super) fn add(&mut self, key: &str, value: &[u8]) {
        let kind = kind_of(value);
        if !matches!(self.tried.get(kind), Some(Err(_))) {
            let says = describe_readable(key, value, self.configuration);
            let says = says.map_err(|error| format!("{error:#}"));
            self.tried.insert(kind.to_vec(), says);
        }
    }

    /// How all kinds can be read, or why some cannot: each of these is named.
    pub(super) fn describe(self) -> Result<String, String> {
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for says in self.tried.into_values() {
            match says {
                Ok(says) => good.push(says),
                Err(why) => bad.push(why),
            }
        }
        match (bad.is_empty(), good.is_empty()) {
            (false, _) => Err(bad.join("; ")),
            (true, true) => Ok("it has no Secrets".to_owned()),
            (true, false) => Ok(good.join("; ")),
        }
    }
}

/// The beginning of a value that says how it is encrypted: `k8s:enc:PROVIDER:VERSION:KEY:`. Empty if it is not.
fn kind_of(value: &[u8]) -> &[u8] {
    const PARTS: usize = 5;
    if !value.starts_with(ENCRYPTED) {
        return &[];
    }
    let mut ends = value.iter().enumerate().filter(|(_, byte)| **byte == b':');
    let end = ends.nth(PARTS - 1).map_or(value.len(), |(at, _)| at + 1);
    value.get(..end).unwrap_or(value)
}

/// How a Secret with this key and value in etcd can be read. `configuration`: the EncryptionConfiguration, if the API server has one.
/// The error says why it cannot be read; the value and keys stand in neither.
fn describe_readable(
    key: &str,
    value: &[u8],
    configuration: Option<&str>,
) -> anyhow::Result<String> {
    let Some(encrypted) = value.strip_prefix(ENCRYPTED) else {
        return match value.starts_with(PROTOBUF) || value.first() == Some(&b'{') {
            true => Ok("Secrets are not encrypted".to_owned()),
            false => bail!("{key} is neither an object of the API server nor encrypted"),
        };
    };
    let mut parts = encrypted.splitn(4, |byte| *byte == b':');
    let mut part = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (provider, version, name) = (part(), part(), part());
    let data = parts.next().unwrap_or_default();
    if provider == "kms" {
        return Ok(format!(
            "Secrets are encrypted by the KMS plugin {name}, which a drill cannot ask"
        ));
    }
    if provider == "secretbox" && fips::is_running() {
        return Ok(
            "Secrets are encrypted by secretbox, which is not of the FIPS module: a drill does not decrypt them"
                .to_owned(),
        );
    }
    let configuration = configuration
        .context("Secrets are encrypted, but the API server has no EncryptionConfiguration")?;
    let configuration: Configuration = serde_saphyr::from_str(configuration).map_err(|_| {
        anyhow::anyhow!("the EncryptionConfiguration of the API server cannot be read")
    })?;
    let secret = find_key(&configuration, &provider, &name).with_context(|| {
        format!("Secrets are encrypted with the key {name} of {provider}, which the EncryptionConfiguration does not have")
    })?;
    let secret = STANDARD.decode(&secret).ok();
    let secret = secret.with_context(|| format!("the key {name} of {provider} is not base64"))?;
    let plain = match (provider.as_str(), version.as_str()) {
        ("aescbc", "v1") => decrypt_cbc(&secret, data),
        ("aesgcm", "v1") => decrypt_gcm(&secret, data, key.as_bytes()),
        ("secretbox", "v1") => decrypt_secretbox(&secret, data),
        _ => {
            bail!("Secrets are encrypted by {provider} {version}, which this release does not know")
        }
    };
    match plain.is_some_and(|plain| plain.starts_with(PROTOBUF)) {
        true => Ok(format!(
            "a Secret was decrypted with the key {name} of {provider}"
        )),
        false => bail!("{key} cannot be decrypted with the key {name} of {provider}"),
    }
}

fn find_key(configuration: &Configuration, provider: &str, name: &str) -> Option<String> {
    let providers = configuration
        .resources
        .iter()
        .flat_map(|one| &one.providers);
    let mut keys = providers.flat_map(|one| match provider {
        "aescbc" => &one.aescbc.keys[..],
        "aesgcm" => &one.aesgcm.keys[..],
        "secretbox" => &one.secretbox.keys[..],
        _ => &[],
    });
    keys.find(|key| key.name == name)
        .map(|key| key.secret.clone())
}

/// The initialization vector, then blocks with padding of PKCS 7 (apiserver: `encrypt/aes/aes.go`).
fn decrypt_cbc(key: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    let (iv, blocks) = data.split_at_checked(IV)?;
    let algorithm = match key.len() {
        16 => &AES_128,
        24 => &AES_192,
        _ => &AES_256,
    };
    let key = UnboundCipherKey::new(algorithm, key).ok()?;
    let key = PaddedBlockDecryptingKey::cbc_pkcs7(key).ok()?;
    let context = DecryptionContext::Iv128(iv.try_into().ok()?);
    let mut blocks = blocks.to_vec();
    Some(key.decrypt(&mut blocks, context).ok()?.to_vec())
}

/// A nonce, then text and tag; the key in etcd is authenticated too (`encrypt/aes/aes.go`).
fn decrypt_gcm(key: &[u8], data: &[u8], authenticated: &[u8]) -> Option<Vec<u8>> {
    let (nonce, text) = data.split_at_checked(GCM_NONCE)?;
    let algorithm = match key.len() {
        16 => &AES_128_GCM,
        24 => &AES_192_GCM,
        _ => &AES_256_GCM,
    };
    let key = LessSafeKey::new(UnboundKey::new(algorithm, key).ok()?);
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut text = text.to_vec();
    let plain = key
        .open_in_place(nonce, Aad::from(authenticated), &mut text)
        .ok()?;
    Some(plain.to_vec())
}

/// A nonce, then tag and text (`encrypt/secretbox/secretbox.go`).
fn decrypt_secretbox(key: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    let (nonce, text) = data.split_at_checked(SECRETBOX_NONCE)?;
    let cipher = XSalsa20Poly1305::new_from_slice(key).ok()?;
    cipher.decrypt(nonce.into(), text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "/registry/secrets/default/token";

    /// Made with Go 1.26: crypto/cipher and golang.org/x/crypto/nacl/secretbox, as the API server's transformers use them. Text, keys and
    /// nonces are those of [`CONFIGURATION`].
    const VALUES: [(&str, &str); 3] = [
        (
            "aescbc",
            "BwcHBwcHBwcHBwcHBwcHB2m/z10U2p08f1QuiLmYUai7wJxsCtcqephLQAY5V7qu",
        ),
        (
            "aesgcm",
            "CQkJCQkJCQkJCQkJV08OO2YnDawGykqKUD2JCskMHItM4WpqysSN23otCpQ3ASXCoT0=",
        ),
        (
            "secretbox",
            "BQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUF9knBBesr+GUe/LhQ6XmLxJfWKqxhIpJXVjHtd/7bn1PI/bvbwz4=",
        ),
    ];

    const CONFIGURATION: &str = "
kind: EncryptionConfiguration
apiVersion: apiserver.config.k8s.io/v1
resources:
- resources: [secrets]
  providers:
  - aescbc: {keys: [{name: new, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}, {name: k, secret: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=}]}
  - aesgcm: {keys: [{name: k, secret: AAECAwQFBgcICQoLDA0ODw==}]}
  - secretbox: {keys: [{name: k, secret: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=}]}
  - identity: {}
";

    fn value_of(provider: &str, data: &str) -> Vec<u8> {
        let mut value = format!("k8s:enc:{provider}:v1:k:").into_bytes();
        value.extend(STANDARD.decode(data).unwrap());
        value
    }

    #[test]
    fn what_the_api_server_encrypted_is_decrypted() {
        for (provider, data) in VALUES {
            let value = value_of(provider, data);
            let says = describe_readable(KEY, &value, Some(CONFIGURATION)).unwrap();
            assert_eq!(
                says,
                format!("a Secret was decrypted with the key k of {provider}")
            );
            let other = CONFIGURATION.replace("AAEC", "AQEC");
            let mut damaged = value.clone();
            *damaged.last_mut().unwrap() ^= 1;
            for (value, configuration, why) in [
                (&value, Some(other.as_str()), "cannot be decrypted"),
                (&damaged, Some(CONFIGURATION), "cannot be decrypted"),
                (&value, None, "no EncryptionConfiguration"),
                (&value, Some("resources: []"), "does not have"),
            ] {
                let error = describe_readable(KEY, value, configuration).unwrap_err();
                assert!(format!("{error:#}").contains(why), "{provider}: {error:#}");
            }
        }
    }

    /// A rotation that did not end: most are of the new key, and some that nobody wrote since are not. Both may have one name.
    #[test]
    fn each_is_decrypted_and_the_first_of_each_kind_that_cannot_be_is_named() {
        let old = |name: &str| format!("k8s:enc:aescbc:v1:{name}:x").into_bytes();
        let mut kinds = SecretKinds::new(Some(CONFIGURATION));
        assert_eq!(
            SecretKinds::new(None).describe(),
            Ok("it has no Secrets".to_owned())
        );
        for (provider, data) in VALUES {
            kinds.add(KEY, &value_of(provider, data));
        }
        kinds.add(KEY, b"k8s\0\n\x0c");
        assert_eq!(kinds.tried.len(), 4);
        for name in ["gone", "lost"] {
            kinds.add(KEY, &old(name));
        }
        kinds.add("/registry/secrets/default/old", b"k8s:enc:secretbox:v1:k:x");
        kinds.add(KEY, &value_of("secretbox", VALUES[2].1));
        let why = kinds.describe().unwrap_err();
        for said in [
            "the key gone of aescbc",
            "the key lost of aescbc",
            "/registry/secrets/default/old cannot be decrypted with the key k of secretbox",
        ] {
            assert!(why.contains(said), "{said}: {why}");
        }
        assert!(!why.contains("the key k of aes"), "{why}");
    }

    #[test]
    fn what_is_not_encrypted_or_by_a_plugin_is_said() {
        for (value, says) in [
            (&b"k8s\0\n\x0c"[..], "not encrypted"),
            (b"k8s:enc:kms:v2:vault:\x01\x02", "the KMS plugin vault"),
        ] {
            let found = describe_readable(KEY, value, Some(CONFIGURATION)).unwrap();
            assert!(found.contains(says), "{found}");
        }
        assert!(describe_readable(KEY, b"\x00\x01", None).is_err());
    }
}
