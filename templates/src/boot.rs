//! User data: what a machine runs at its first boot.

use crate::{Template, Variable};
use serde::Serialize;

/// The boot script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UserData {
    /// The cluster's name, for the reader.
    pub cluster: String,
    /// Where nodeup and its configuration lie.
    pub directory: String,
    /// How this and everything after it reaches the internet: variables of a proxy, without quotes in them.
    pub environment: Vec<Variable>,
    /// The machine's architecture as `uname -m` says it.
    pub machine: String,
    /// sha256 (hex) of nodeup.
    pub sha256: String,
    /// nodeup's key in the bucket.
    pub key: String,
    /// Where else nodeup may be found: https URLs.
    pub mirrors: Vec<String>,
    /// Bucket with the state store; empty: mirrors only.
    pub bucket: String,
    /// BootConfig.
    pub boot_config: Heredoc,
    /// `nodeup.service`.
    pub unit: String,
}

/// Text of a file, or its gzip in base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Heredoc {
    /// The text, or base64.
    pub text: String,
    /// It is base64 of gzip.
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
