//! User data: the script that an instance runs at its first boot.

use crate::{Template, Variable};
use serde::Serialize;

/// The user data script, which fetches, verifies and starts nodeup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UserData {
    /// Cluster name, shown in a comment.
    pub cluster: String,
    /// Folder of nodeup and its configuration.
    pub directory: String,
    /// Proxy variables of the script and of everything that it starts; values contain no quotes.
    pub environment: Vec<Variable>,
    /// True if there are any.
    pub has_proxy: bool,
    /// True in an IPv6 cluster: the instance may have no IPv4 address.
    pub ipv6: bool,
    /// Architecture as `uname -m` prints it.
    pub machine: String,
    /// sha256 (hex) of nodeup.
    pub sha256: String,
    /// nodeup's key in the bucket.
    pub key: String,
    /// Other sources of nodeup: https URLs.
    pub mirrors: Vec<String>,
    /// Bucket of the state store; empty if nodeup comes from mirrors only.
    pub bucket: String,
    /// BootConfig as YAML.
    pub boot_config: Heredoc,
    /// `nodeup.service`.
    pub unit: String,
}

/// Text of a file, plain or compressed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Heredoc {
    /// Plain text, or base64 of gzip.
    pub text: String,
    /// True if `text` is base64 of gzip.
    pub compressed: bool,
}

impl Template for UserData {
    const NAME: &'static str = "boot/user-data.sh.hbs";
    const SOURCE: &'static str = include_str!("../boot/user-data.sh.hbs");
}

#[cfg(test)]
impl UserData {
    pub(crate) fn sample() -> Self {
        Self {
            cluster: "a.example.com".into(),
            directory: "/opt/kctl".into(),
            environment: vec![Variable {
                name: "http_proxy".into(),
                value: "http://proxy.example.com:3128".into(),
            }],
            has_proxy: true,
            ipv6: true,
            machine: "x86_64".into(),
            sha256: "0".repeat(64),
            key: "state/a.example.com/assets/0/amd64/nodeup".into(),
            mirrors: vec!["https://mirror.example.com/nodeup".into()],
            bucket: "bucket".into(),
            boot_config: Heredoc {
                text: "cluster: a.example.com\n".into(),
                compressed: false,
            },
            unit: "[Unit]\n".into(),
        }
    }
}
