//! The SSH key of machines.

use super::{Found, Known};
use crate::api::cluster::ClusterSpec;
use full::SshKey;
use node::names;

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
        found.warning(
            "",
            "machines get the first of the cluster's SSH keys only",
            "remove the others, or have them written by a hook or fileAssets",
        );
    }
    let Some(name) = names::key_pair(&known.name, first) else {
        found.error(
            "",
            "the cluster's SSH key is not an OpenSSH public key",
            "pass the file that ends in .pub",
        );
        return None;
    };
    Some(Some(SshKey::Ours {
        name,
        public_key: without_comment(first),
    }))
}

/// Type and base64: AWS does not give the comment back reliably.
fn without_comment(key: &str) -> String {
    let words: Vec<&str> = key.split_whitespace().take(2).collect();
    words.join(" ")
}
