//! Files and units as data.

use serde::{Deserialize, Serialize};

/// A file on a machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct File {
    /// Where.
    pub path: String,
    /// Octal: `0644`.
    pub mode: String,
    /// User and group.
    pub owner: String,
    /// What is in it.
    pub content: String,
    /// `content` is base64 of what is in it: bytes that are no text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub base64: bool,
}

impl File {
    /// A file of root's that everyone may read.
    pub fn new(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            mode: "0644".to_owned(),
            owner: "root:root".to_owned(),
            content: content.into(),
            base64: false,
        }
    }

    /// The same with another mode.
    #[must_use]
    pub fn mode(self, mode: &str) -> Self {
        Self {
            mode: mode.to_owned(),
            ..self
        }
    }
}

/// A systemd unit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Unit {
    /// `kubelet.service`.
    pub name: String,
    /// What is in it.
    pub content: String,
    /// Started now and at every boot; else it is there, and masked.
    pub enabled: bool,
}

impl Unit {
    /// A unit that runs.
    pub fn new(name: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            content: content.into(),
            enabled: true,
        }
    }
}
