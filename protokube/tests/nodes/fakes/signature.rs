//! Signature version 4, verified as AWS does: from its public description, not with the code that signs.

use aws_lc_rs::{digest, hmac};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The signature that a POST to `/` with these headers and body should carry, by that secret.
pub fn expected(headers: &BTreeMap<String, String>, body: &[u8], secret: &str) -> String {
    let scope = part(headers, "Credential=").split_once('/').unwrap().1;
    let signed = part(headers, "SignedHeaders=");
    let mut canonical = "POST\n/\n\n".to_owned();
    for name in signed.split(';') {
        let value = headers.get(name).map_or("", |value| value.trim());
        writeln!(canonical, "{name}:{value}").unwrap();
    }
    write!(canonical, "\n{signed}\n{}", hex(sha256(body).as_ref())).unwrap();
    let date = &headers["x-amz-date"];
    let digest = hex(sha256(canonical.as_bytes()).as_ref());
    let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{digest}");
    let first = format!("AWS4{secret}").into_bytes();
    let key = scope.split('/').fold(first, |key, word| mac(&key, word));
    hex(&mac(&key, &to_sign))
}

/// A part of `authorization`.
pub fn part<'a>(headers: &'a BTreeMap<String, String>, name: &str) -> &'a str {
    let authorization = &headers["authorization"];
    let start = authorization.find(name).unwrap() + name.len();
    authorization[start..].split(',').next().unwrap()
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
}

fn sha256(bytes: &[u8]) -> digest::Digest {
    digest::digest(&digest::SHA256, bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
