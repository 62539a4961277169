//! Files and systemd units in NodeConfig.

use serde::{Deserialize, Serialize};

/// A file on an instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct File {
    /// Absolute path.
    pub path: String,
    /// Mode in octal: `0644`.
    pub mode: String,
    /// `user:group`.
    pub owner: String,
    /// Content; text, or base64 if `base64` is true.
    pub content: String,
    /// True if `content` is base64, for bytes that are not text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub base64: bool,
}

impl File {
    /// A text file with owner `root:root` and mode 0644.
    pub fn new(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            mode: "0644".to_owned(),
            owner: "root:root".to_owned(),
            content: content.into(),
            base64: false,
        }
    }

    /// The same file with another mode.
    #[must_use]
    pub fn with_mode(self, mode: &str) -> Self {
        Self {
            mode: mode.to_owned(),
            ..self
        }
    }
}

/// A systemd unit and its text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UnitFile {
    /// Name with its suffix: `kubelet.service`.
    pub name: String,
    /// Text of the unit file.
    pub content: String,
    /// True: the unit is started now and at every boot. False: it is masked.
    pub enabled: bool,
}

impl UnitFile {
    pub fn new(name: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            content: content.into(),
            enabled: true,
        }
    }
}
