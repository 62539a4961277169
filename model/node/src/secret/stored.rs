//! Secrets that users put into the state store: names, format (that of kOps) and checks. Errors never quote a secret.

use super::Secret;
use crate::yaml::read_as;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Name of the secret with an `EncryptionConfiguration`, by which the API server encrypts data in etcd.
pub const ENCRYPTION_CONFIG: &str = "encryptionconfig";

/// Name of the secret with passwords of image registries: a `config.json` of docker.
pub const DOCKER_CONFIG: &str = "dockerconfig";

/// Name of the secret with the key by which cilium encrypts packets with IPsec.
pub const CILIUM_PASSWORD: &str = "ciliumpassword";

/// Names of all secrets that kctl supports.
pub const STORED: [&str; 3] = [ENCRYPTION_CONFIG, DOCKER_CONFIG, CILIUM_PASSWORD];

/// Begins the names under which former contents of [`ENCRYPTION_CONFIG`] are kept; a time follows. What was encrypted with a key that
/// the present one lacks, such as the Secrets in backups, can be read only with it.
pub const KEPT_ENCRYPTION_CONFIG: &str = "encryptionconfig-kept";

/// Key of a secret, relative to the cluster's base in the state store; the same as in kOps.
pub fn stored_path(name: &str) -> String {
    format!("secrets/{name}")
}

/// The stored object: JSON with base64, as in kOps.
#[derive(Deserialize)]
struct StoredSecret {
    #[serde(rename = "Data")]
    data: String,
}

/// Parses a stored secret; `None` if the text does not have kOps' format.
pub fn read_stored(text: &str) -> Option<Secret> {
    let stored: StoredSecret = serde_json::from_str(text).ok()?;
    let data = STANDARD.decode(stored.data.trim()).ok()?;
    String::from_utf8(data).ok().map(Secret::new)
}

/// Writes the object to store.
pub fn write_stored(secret: &Secret) -> Secret {
    Secret::new(json!({"Data": STANDARD.encode(secret.reveal())}).to_string())
}

/// Checks the content of a secret with this name. The error is a message and a hint.
pub fn check_stored(name: &str, secret: &Secret) -> Result<(), (String, &'static str)> {
    match name {
        ENCRYPTION_CONFIG => check_encryption_config(secret),
        DOCKER_CONFIG => check_docker_config(secret),
        CILIUM_PASSWORD => check_cilium_password(secret),
        _ => Err((
            format!("kctl does not use a secret {name}"),
            "use encryptionconfig, dockerconfig or ciliumpassword",
        )),
    }
}

/// Checks the structure of an encryption configuration and the lengths of its keys. All else of providers is left to the API server.
fn check_encryption_config(secret: &Secret) -> Result<(), (String, &'static str)> {
    const HINT: &str = "see https://kubernetes.io/docs/tasks/administer-cluster/encrypt-data/";
    let wrong = |what: &str| {
        Err((
            format!("this is not an EncryptionConfiguration: {what}"),
            HINT,
        ))
    };
    // The parser's error would quote the text.
    let config = match read_as::<Value>(secret.reveal()) {
        Ok(config) => config,
        Err(serde_saphyr::Error::MultipleDocuments { .. }) => {
            return wrong("it has several YAML documents");
        }
        Err(_) => return wrong("it cannot be read as YAML"),
    };
    let said = (
        text_field(&config, "apiVersion"),
        text_field(&config, "kind"),
    );
    if said != ("apiserver.config.k8s.io/v1", "EncryptionConfiguration") {
        return wrong(
            "apiVersion and kind are not apiserver.config.k8s.io/v1 and EncryptionConfiguration",
        );
    }
    let whole = |rule: &Value| {
        let filled = |field| list_field(rule, field).is_some_and(|list| !list.is_empty());
        filled("resources") && filled("providers")
    };
    match list_field(&config, "resources") {
        Some(rules) if !rules.is_empty() && rules.iter().all(whole) => check_encryption_keys(rules),
        _ => wrong("it needs resources, each with resources and providers"),
    }
}

/// Checks the keys of an encryption configuration that is stored already, and nothing else of it: API servers take more forms than
/// [`check_stored`] does, such as kind `EncryptionConfig` of `v1`. The error is a message and a hint.
pub fn check_key_lengths(secret: &Secret) -> Result<(), (String, &'static str)> {
    let config = read_as::<Value>(secret.reveal()).unwrap_or_default();
    let rules = list_field(&config, "resources").map(Vec::as_slice);
    check_encryption_keys(rules.unwrap_or_default())
}

/// Checks the keys of all providers. The API server ends at its start if it does not take one.
fn check_encryption_keys(rules: &[Value]) -> Result<(), (String, &'static str)> {
    const HINT: &str = "`head -c 32 /dev/urandom | base64` makes a key for any provider";
    for (at, rule) in rules.iter().enumerate() {
        let providers = list_field(rule, "providers").into_iter().flatten();
        for (which, provider) in providers.enumerate() {
            for (name, settings) in provider.as_object().into_iter().flatten() {
                check_provider_keys(name, settings).map_err(|wrong| {
                    let place = format!("resources[{at}].providers[{which}].{name}.keys");
                    (format!("{place}{wrong}"), HINT)
                })?;
            }
        }
    }
    Ok(())
}

/// The bytes that a key of a provider may have, as in `ValidateEncryptionConfiguration` of k8s.io/apiserver; `None`: KMS plugins and `identity`
/// have no keys.
fn key_lengths(provider: &str) -> Option<&'static [usize]> {
    match provider {
        "aescbc" | "aesgcm" => Some(&[16, 24, 32]),
        "secretbox" => Some(&[32]),
        _ => None,
    }
}

/// Checks the keys of one provider. The error continues the path of the list.
fn check_provider_keys(provider: &str, settings: &Value) -> Result<(), String> {
    let Some(lengths) = key_lengths(provider) else {
        return Ok(());
    };
    let keys = list_field(settings, "keys").into_iter().flatten();
    let mut keys = keys.enumerate().peekable();
    if keys.peek().is_none() {
        return Err(" is empty".to_owned());
    }
    for (number, key) in keys {
        match key_length(text_field(key, "secret")) {
            Some(length) if lengths.contains(&length) => {}
            Some(length) => {
                let taken: Vec<String> = lengths.iter().map(ToString::to_string).collect();
                return Err(format!(
                    "[{number}].secret has {length} bytes, and {provider} takes {}",
                    taken.join(" or ")
                ));
            }
            None => return Err(format!("[{number}].secret is not base64")),
        }
    }
    Ok(())
}

/// Length of a key in bytes, as Go decodes base64: it skips line ends, and does not look at the last bits, which have no meaning.
fn key_length(text: &str) -> Option<usize> {
    const OF_GO: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    let decoded = OF_GO.decode(text.replace(['\r', '\n'], "")).ok()?;
    Some(decoded.len())
}

/// The keys of an encryption configuration that another one lacks, as `NAME of PROVIDER`. A key of the same name with another content is
/// another key. One that no API server takes has encrypted nothing.
pub fn lost_encryption_keys(before: &Secret, after: &Secret) -> Vec<String> {
    let kept = encryption_keys(after);
    let is_taken = |provider: &str, content: &str| {
        let lengths = key_lengths(provider);
        lengths.is_none_or(|all| key_length(content).is_some_and(|one| all.contains(&one)))
    };
    let lost = encryption_keys(before).into_iter();
    let lost = lost.filter(|key| !kept.contains(key) && is_taken(&key.0, &key.2));
    lost.map(|(provider, name, _)| format!("{name} of {provider}"))
        .collect()
}

/// Provider, name and content of each key; of a KMS plugin its address. None of a text that cannot be read.
fn encryption_keys(secret: &Secret) -> BTreeSet<(String, String, String)> {
    let config = read_as::<Value>(secret.reveal()).unwrap_or_default();
    let rules = list_field(&config, "resources").into_iter().flatten();
    let providers = rules.flat_map(|rule| list_field(rule, "providers").into_iter().flatten());
    let providers = providers.filter_map(Value::as_object).flatten();
    providers
        .flat_map(|(provider, settings)| {
            let key = |one: &Value, content: &str| {
                let text = |field| text_field(one, field).to_owned();
                (provider.clone(), text("name"), text(content))
            };
            match list_field(settings, "keys") {
                Some(keys) => keys.iter().map(|one| key(one, "secret")).collect(),
                None if provider == "kms" => vec![key(settings, "endpoint")],
                None => Vec::new(),
            }
        })
        .collect()
}

/// Checks a docker configuration as kubelet reads it: `auths` by registry.
fn check_docker_config(secret: &Secret) -> Result<(), (String, &'static str)> {
    const HINT: &str = "`docker login` writes one, without a credsStore: {\"auths\": {\"registry.example.com\": {\"auth\": \"...\"}}}";
    let wrong = |what: &str| Err((format!("this is not a config.json of docker: {what}"), HINT));
    let Ok(config) = serde_json::from_str::<Value>(secret.reveal()) else {
        return wrong("it is not JSON");
    };
    let registries = config.get("auths").and_then(Value::as_object);
    let Some(registries) = registries.filter(|all| !all.is_empty()) else {
        return wrong("it has no auths");
    };
    let usable = |entry: &Value| {
        let has = |field| !text_field(entry, field).is_empty();
        has("auth") || (has("username") && has("password"))
    };
    match registries.iter().find(|(_, entry)| !usable(entry)) {
        None => Ok(()),
        Some((registry, _)) => wrong(&format!(
            "{registry} has neither auth nor username and password"
        )),
    }
}

/// The largest number of a key of cilium, which packets carry.
const MAX_KEY_ID: u8 = 15;

/// The one algorithm that encrypts and authenticates which cilium's pages name, and the lengths of its keys in hexadecimal digits: those of
/// AES and four bytes of salt (RFC 4106, 8.1). With any other length agents start, and Linux refuses their keys.
const AEAD: &str = "rfc4106(gcm(aes))";
const AEAD_DIGITS: [usize; 3] = [40, 56, 72];

/// Checks cilium's key as its agents read it, and Linux takes it: `keys: ID ALGORITHM KEY ICV`, or two algorithms with a key each.
fn check_cilium_password(secret: &Secret) -> Result<(), (String, &'static str)> {
    const HINT: &str = "write `keys: 1+ rfc4106(gcm(aes)) HEX 128`, with 40 hexadecimal digits from a random source";
    let wrong = |what: String| Err((format!("this is no key of cilium: {what}"), HINT));
    let Some(line) = read_cilium_key(secret) else {
        return wrong("it needs the field keys, in YAML, with one line".to_owned());
    };
    if cilium_key_id(&line).is_none() {
        return wrong(format!(
            "it begins with no number from 1 to {MAX_KEY_ID}, which + may follow"
        ));
    }
    let hex = |text: &str| {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        !digits.is_empty()
            && digits.len().is_multiple_of(2)
            && digits.chars().all(|one| one.is_ascii_hexdigit())
    };
    let fields: Vec<&str> = line.reveal().split_whitespace().collect();
    match fields.as_slice() {
        [_, algorithm, key, length] => {
            let digits = key.strip_prefix("0x").unwrap_or(key).len();
            if *algorithm != AEAD {
                wrong(format!("its algorithm is not {AEAD}"))
            } else if !hex(key) {
                wrong("its key is not in hexadecimal digits".to_owned())
            } else if !AEAD_DIGITS.contains(&digits) {
                wrong(format!(
                    "its key has {digits} hexadecimal digits, not 40, 56 or 72"
                ))
            } else if !["96", "128"].contains(length) {
                wrong("its last number is not 96 or 128".to_owned())
            } else {
                Ok(())
            }
        }
        [_, _, authentication, _, encryption] if hex(authentication) && hex(encryption) => Ok(()),
        [_, _, _, _, _] => wrong("its keys are not in hexadecimal digits".to_owned()),
        fields => wrong(format!("it has {} fields, not 4 or 5", fields.len())),
    }
}

/// cilium's key without the field that it is in; `None` of a text that is no such secret.
pub fn read_cilium_key(secret: &Secret) -> Option<Secret> {
    // The parser's error would quote the text.
    let fields = read_as::<Value>(secret.reveal()).ok()?;
    let line = text_field(&fields, "keys").trim();
    let alone = fields.as_object().is_some_and(|fields| fields.len() == 1);
    (alone && !line.is_empty() && !line.contains('\n')).then(|| Secret::new(line))
}

/// The number of cilium's key. Agents tell a new key from the former one by it.
pub fn cilium_key_id(line: &Secret) -> Option<u8> {
    let first = line.reveal().split_whitespace().next()?;
    let number: u8 = first.strip_suffix('+').unwrap_or(first).parse().ok()?;
    (1..=MAX_KEY_ID).contains(&number).then_some(number)
}

/// What agents call the length of cilium's key, and do not let change (`loadIPSecKeys` in pkg/datapath/linux/ipsec of cilium): that of what
/// authenticates packets, in bytes of it or in digits of its key.
pub fn cilium_key_length(line: &Secret) -> Option<usize> {
    let fields: Vec<&str> = line.reveal().split_whitespace().collect();
    match fields.as_slice() {
        [_, _, _, bits] => bits.parse::<usize>().ok().map(|bits| bits / 8),
        [_, _, key, _, _] => Some(key.strip_prefix("0x").unwrap_or(key).len()),
        _ => None,
    }
}

/// The text in a field; empty if the field is missing or not text.
fn text_field<'a>(value: &'a Value, field: &str) -> &'a str {
    let field = value.get(field).and_then(Value::as_str);
    field.unwrap_or_default()
}

fn list_field<'a>(value: &'a Value, field: &str) -> Option<&'a Vec<Value>> {
    value.get(field)?.as_array()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENCRYPTION: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n  - aescbc: {keys: [{name: key1, secret: c3dvcmRmaXNoc3dvcmQxNg==}]}\n  - identity: {}\n";
    const KEY: &str = "c3dvcmRmaXNoc3dvcmQxNg==";
    const CILIUM: &str =
        "keys: 3+ rfc4106(gcm(aes)) c0ffeec0ffeec0ffeec0ffeec0ffeec0ffeec0ff 128\n";
    const DOCKER: &str = r#"{"auths": {"registry.example.com": {"auth": "c3dvcmRmaXNo"}}}"#;

    #[test]
    fn a_secret_is_kept_as_kops_keeps_it() {
        let stored = write_stored(&Secret::new("swordfish\n"));
        assert_eq!(stored.reveal(), r#"{"Data":"c3dvcmRmaXNoCg=="}"#);
        assert_eq!(
            read_stored(stored.reveal()).unwrap().reveal(),
            "swordfish\n"
        );
        for none in ["", "{}", r#"{"Data": "?"}"#, r#"{"Data": "/w=="}"#] {
            assert!(read_stored(none).is_none(), "{none}");
        }
    }

    #[test]
    fn a_key_is_lost_unless_provider_name_and_content_stay() {
        let lost = |after: &str| {
            let secret = |text: &str| Secret::new(text);
            lost_encryption_keys(&secret(ENCRYPTION), &secret(after))
        };
        let added = ENCRYPTION.replace("keys: [", "keys: [{name: new, secret: bmV3}, ");
        for kept in [
            ENCRYPTION,
            &added,
            &ENCRYPTION.replace("identity", "aesgcm"),
        ] {
            assert_eq!(lost(kept), Vec::<String>::new(), "{kept}");
        }
        for without in [
            "",
            &ENCRYPTION.replace("aescbc", "aesgcm"),
            &ENCRYPTION.replace("key1", "key2"),
            &ENCRYPTION.replace("c3dvcmRmaXNo", "bmV3bmV3bmV3"),
        ] {
            assert_eq!(lost(without), ["key1 of aescbc"], "{without}");
        }
        for wrong in ["bmV3", "?"] {
            let other = format!("keys: [{{name: wrong, secret: \"{wrong}\"}}, ");
            let before = Secret::new(ENCRYPTION.replace("keys: [", &other));
            let after = [ENCRYPTION, ""].map(Secret::new);
            let lost = after.map(|after| lost_encryption_keys(&before, &after));
            assert_eq!(lost, [vec![], vec!["key1 of aescbc".to_owned()]], "{wrong}");
        }
        let plugin = ENCRYPTION.replace(
            "aescbc: {keys: [{name: key1, secret: c3dvcmRmaXNoc3dvcmQxNg==}]}",
            "kms: {apiVersion: v2, name: vault, endpoint: \"unix:///a\"}",
        );
        let lost = lost_encryption_keys(&Secret::new(plugin), &Secret::new(ENCRYPTION));
        assert_eq!(lost, ["vault of kms"]);
    }

    #[test]
    fn a_key_is_taken_exactly_if_the_api_server_takes_its_length() {
        let rules: [(&str, &[usize]); 3] = [
            ("aescbc", &[16, 24, 32]),
            ("aesgcm", &[16, 24, 32]),
            ("secretbox", &[32]),
        ];
        for (provider, lengths) in rules {
            for length in 0..=64 {
                let key = STANDARD.encode(vec![0xAB_u8; length]);
                let text = ENCRYPTION.replace("aescbc", provider).replace(KEY, &key);
                let legacy = text.replace("apiserver.config.k8s.io/v1", "v1");
                let legacy = legacy.replace("EncryptionConfiguration", "EncryptionConfig");
                let checked = check_stored(ENCRYPTION_CONFIG, &Secret::new(text));
                assert_eq!(checked.is_ok(), lengths.contains(&length), "{checked:?}");
                assert_eq!(check_key_lengths(&Secret::new(legacy)), checked);
                if let Err((message, _)) = checked {
                    let place = format!("resources[0].providers[0].{provider}.keys[0].secret");
                    assert!(
                        message.starts_with(&format!("{place} has {length} bytes")),
                        "{message}"
                    );
                    assert!(key.is_empty() || !message.contains(&key), "{message}");
                }
            }
        }
    }

    /// A configuration that works must not stop an update.
    #[test]
    fn what_go_decodes_and_providers_without_keys_are_taken() {
        let keys = format!("aescbc: {{keys: [{{name: key1, secret: {KEY}}}]}}");
        for text in [
            ENCRYPTION.replace(KEY, "c3dvcmRmaXNoc3dvcmQxNh=="),
            ENCRYPTION.replace(KEY, &format!("\"{KEY}\\n\"")),
            ENCRYPTION.replace(
                &keys,
                "kms: {apiVersion: v2, name: a, endpoint: \"unix:///a\"}",
            ),
        ] {
            assert_ne!(text, ENCRYPTION);
            let checked = check_stored(ENCRYPTION_CONFIG, &Secret::new(text.clone()));
            assert_eq!(checked, Ok(()), "{text}");
        }
    }

    #[test]
    fn what_can_be_used_is_taken_and_anything_else_is_named_without_being_shown() {
        let check = |name: &str, text: &str| check_stored(name, &Secret::new(text));
        assert_eq!(check(ENCRYPTION_CONFIG, ENCRYPTION), Ok(()));
        assert_eq!(check(DOCKER_CONFIG, DOCKER), Ok(()));
        let login = r#"{"auths": {"r": {"username": "u", "password": "p"}}}"#;
        assert_eq!(check(DOCKER_CONFIG, login), Ok(()));
        let two = "keys: 1 hmac(sha256) 0xc0ff cbc(aes) 0xc0ff\n";
        for text in [CILIUM, &CILIUM.replace("3+", "15"), two] {
            assert_eq!(check(CILIUM_PASSWORD, text), Ok(()), "{text}");
        }
        let line = read_cilium_key(&Secret::new(CILIUM)).unwrap();
        assert_eq!(format!("keys: {}\n", line.reveal()), CILIUM);
        assert_eq!(
            (cilium_key_id(&line), cilium_key_length(&line)),
            (Some(3), Some(16))
        );
        let line = read_cilium_key(&Secret::new(two)).unwrap();
        assert_eq!(cilium_key_length(&line), Some(4));
        let broken = [
            (ENCRYPTION_CONFIG, ENCRYPTION.replace("v1", "v2")),
            (ENCRYPTION_CONFIG, ENCRYPTION.replace("kind: E", "kind: X")),
            (
                ENCRYPTION_CONFIG,
                ENCRYPTION.replace("providers", "provider"),
            ),
            (
                ENCRYPTION_CONFIG,
                "resources: [swordfish: c3dvcmRmaXNo".to_owned(),
            ),
            (ENCRYPTION_CONFIG, "- c3dvcmRmaXNo".to_owned()),
            (ENCRYPTION_CONFIG, ENCRYPTION.replace("==", "!!")),
            (ENCRYPTION_CONFIG, ENCRYPTION.replace("keys: ", "key: ")),
            (DOCKER_CONFIG, "c3dvcmRmaXNo".to_owned()),
            (
                DOCKER_CONFIG,
                r#"{"credsStore": "c3dvcmRmaXNo"}"#.to_owned(),
            ),
            (
                DOCKER_CONFIG,
                r#"{"auths": {"r": {"auth": "", "x": "c3dvcmRmaXNo"}}}"#.to_owned(),
            ),
            (DOCKER_CONFIG, r#"{"auths": []}"#.to_owned()),
            (CILIUM_PASSWORD, "c3dvcmRmaXNo".to_owned()),
            (CILIUM_PASSWORD, "keys: c3dvcmRmaXNo".to_owned()),
            (CILIUM_PASSWORD, CILIUM.replace("3+", "16")),
            (CILIUM_PASSWORD, CILIUM.replace("3+", "0")),
            (CILIUM_PASSWORD, CILIUM.replace("c0ff ", "c3dvcmRmaXNo ")),
            (CILIUM_PASSWORD, CILIUM.replace("c0ff ", " ")),
            (CILIUM_PASSWORD, CILIUM.replace("rfc", "c3dvcmRmaXNo")),
            (CILIUM_PASSWORD, CILIUM.replace("4106", "4109")),
            (CILIUM_PASSWORD, CILIUM.replace("128", "256")),
            (CILIUM_PASSWORD, CILIUM.replace("128", "c3dvcmRmaXNo")),
            (CILIUM_PASSWORD, format!("{CILIUM}more: c3dvcmRmaXNo\n")),
            ("kubepassword", "c3dvcmRmaXNo".to_owned()),
        ];
        for (name, text) in broken {
            let (message, hint) = check(name, &text).unwrap_err();
            assert!(!message.is_empty() && !hint.is_empty());
            assert!(!message.contains("c3dvcmRmaXNo"), "{message}");
        }
    }
}
