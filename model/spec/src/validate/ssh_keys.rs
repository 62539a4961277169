//! Public SSH keys.

use crate::api::SSHCredential;
use crate::read::Problem;

pub fn check(key: &SSHCredential, problems: &mut Vec<Problem>) {
    let path = "spec.publicKey";
    let text = key.spec.public_key.trim();
    if text.contains("PRIVATE KEY") {
        let problem = Problem::error(path, "this is a private key");
        return problems.push(problem.hint("give the public half, the file that ends in .pub"));
    }
    // EC2 User Guide, "Create a key pair": supported types are ED25519 and RSA; others are InvalidKey.Format.
    let kind = text.split_whitespace().next().unwrap_or_default();
    if kind == "ssh-dss" || kind.starts_with("ecdsa-") || kind.starts_with("sk-") {
        let problem = Problem::error(path, format!("EC2 imports no key of type {kind}"));
        return problems.push(problem.hint("make one that it takes: ssh-keygen -t ed25519"));
    }
    if ssh_key::PublicKey::from_openssh(text).is_err() {
        let problem = Problem::error(path, "this is not a public SSH key");
        problems.push(
            problem.hint(
                "write the line of the .pub file: ssh-ed25519 or ssh-rsa, the key, a comment",
            ),
        );
    }
}
