//! The SSH key of instances.

use super::{Context, Findings};
use crate::api::cluster::ClusterSpec;
use full::SshKey;
use node::names;

/// The key pair of instances: an existing one (`spec.sshKeyName`; empty: none at all), or one that kctl
/// creates from the first public key of the cluster, or none. The outer `None` is a reported problem.
#[expect(clippy::option_option, reason = "a problem, no key, a key")]
pub(super) fn ssh_key(
    spec: &ClusterSpec,
    context: &Context,
    public_keys: &[String],
    findings: &mut Findings,
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
        findings.add_warning(
            "",
            "instances get only the first of the cluster's SSH keys",
            "take the others out with `kctl delete sshpublickey`, or install them with a hook or fileAssets",
        );
    }
    let Some(name) = names::key_pair(&context.name, first) else {
        findings.add_error(
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

/// The key's type and base64 part. AWS does not return the comment reliably.
fn without_comment(key: &str) -> String {
    let words: Vec<&str> = key.split_whitespace().take(2).collect();
    words.join(" ")
}
