//! Downloads, and where what is in them goes.

use serde::Serialize;
use std::collections::BTreeMap;

/// A download in its places. Programs are 0755 and root's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Download {
    /// `containerd`, `kubelet`, ...
    pub name: String,
    /// Hex; what it is called in the folder of verified downloads.
    pub sha256: String,
    /// Where it goes.
    pub place: Place,
}

/// Where a download goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The download itself is a program, for this path.
    Program(String),
    /// Paths of members of a compressed tar archive by their names in it; what is not named stays out.
    Members(BTreeMap<String, String>),
    /// Every program of a compressed tar archive goes into this folder.
    Programs(String),
}

impl Place {
    /// Whether the download is what brings this file.
    pub fn has(&self, path: &str) -> bool {
        match self {
            Self::Program(program) => program == path,
            Self::Members(members) => members.values().any(|member| member == path),
            Self::Programs(folder) => path
                .rsplit_once('/')
                .is_some_and(|(parent, _)| parent == folder),
        }
    }

    /// Where it goes: files, or the folder.
    pub fn paths(&self) -> Vec<&str> {
        match self {
            Self::Program(path) | Self::Programs(path) => vec![path],
            Self::Members(members) => members.values().map(String::as_str).collect(),
        }
    }
}
