//! The SSH key of machines.

use super::{Found, Known};
use crate::api::cluster::ClusterSpec;
use crate::full::SshKey;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};

/// The key pair instances get: an existing one (`spec.sshKeyName`; empty: none at all), or ours with
/// the first of the cluster's public keys, or none. The outer `None` is a problem.
#[expect(clippy::option_option, reason = "a problem, no key, a key")]
pub(super) fn key(
    spec: &ClusterSpec,
    known: &Known,
    public_keys: &[String],
    found: &mut Found,
) -> Option<Option<SshKey>> {
    match spec.ssh_key_name.as_deref() {
        Some("") => return Some(None),
        Some(name) => return Some(Some(SshKey::Existing(name.to_owned()))),
        None => {}
    }
    let Some(first) = public_keys.first() else {
        return Some(None);
    };
    if public_keys.len() > 1 {
        found.warning("", "machines get the first of the cluster's SSH keys only");
    }
    let Some((public_key, fingerprint)) = bare(first) else {
        found.error(
            "",
            "the cluster's SSH key is not an OpenSSH public key",
            "pass the file that ends in .pub",
        );
        return None;
    };
    Some(Some(SshKey::Ours {
        name: format!("kubernetes.{}-{fingerprint}", known.name),
        public_key,
    }))
}

/// Type and base64 of a public key without its comment, and the MD5 of what the base64 holds, as
/// EC2 and OpenSSH write fingerprints.
fn bare(key: &str) -> Option<(String, String)> {
    let mut words = key.split_whitespace();
    let (kind, body) = (words.next()?, words.next()?);
    let blob = STANDARD.decode(body).ok()?;
    let digest = Md5::digest(&blob);
    let pairs: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some((format!("{kind} {body}"), pairs.join(":")))
}
