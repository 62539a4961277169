//! Verifies Signature Version 4 from its public description, independent of the code that signs.

use aws_lc_rs::{digest, hmac};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The expected signature of a POST to `/` with these headers, body and secret key.
pub fn expected_signature(headers: &BTreeMap<String, String>, body: &[u8], secret: &str) -> String {
    let scope = authorization_part(headers, "Credential=")
        .split_once('/')
        .unwrap()
        .1;
    let signed = authorization_part(headers, "SignedHeaders=");
    let mut canonical = "POST\n/\n\n".to_owned();
    for name in signed.split(';') {
        let value = headers.get(name).map_or("", |value| value.trim());
        writeln!(canonical, "{name}:{value}").unwrap();
    }
    write!(canonical, "\n{signed}\n{}", to_hex(sha256(body).as_ref())).unwrap();
    let date = &headers["x-amz-date"];
    let digest = to_hex(sha256(canonical.as_bytes()).as_ref());
    let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{digest}");
    let first = format!("AWS4{secret}").into_bytes();
    let key = scope
        .split('/')
        .fold(first, |key, word| hmac_sha256(&key, word));
    to_hex(&hmac_sha256(&key, &to_sign))
}

/// The value of a part of the header `authorization`.
pub fn authorization_part<'a>(headers: &'a BTreeMap<String, String>, name: &str) -> &'a str {
    let authorization = &headers["authorization"];
    let start = authorization.find(name).unwrap() + name.len();
    authorization[start..].split(',').next().unwrap()
}

fn hmac_sha256(key: &[u8], text: &str) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
}

fn sha256(bytes: &[u8]) -> digest::Digest {
    digest::digest(&digest::SHA256, bytes)
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
