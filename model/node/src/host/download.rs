//! Installed downloads.

use serde::Serialize;
use std::collections::BTreeMap;

/// A download and its target paths. Programs have mode 0755 and owner root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Download {
    /// Name: `containerd`, `kubelet`, ...
    pub name: String,
    /// sha256, hex; also the file name in nodeup's cache.
    pub sha256: String,
    /// Target paths.
    pub place: InstallTarget,
}

/// Target paths of a download.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InstallTarget {
    /// The download is a program with this path.
    Program(String),
    /// Members of a compressed tar archive: target paths by name in the archive. Other members are not installed.
    Members(BTreeMap<String, String>),
    /// All programs of a compressed tar archive are installed in this folder.
    Programs(String),
}

impl InstallTarget {
    /// True if the download installs this file.
    pub fn provides_file(&self, path: &str) -> bool {
        match self {
            Self::Program(program) => program == path,
            Self::Members(members) => members.values().any(|member| member == path),
            Self::Programs(folder) => path
                .rsplit_once('/')
                .is_some_and(|(parent, _)| parent == folder),
        }
    }

    /// The target files, or the target folder.
    pub fn paths(&self) -> Vec<&str> {
        match self {
            Self::Program(path) | Self::Programs(path) => vec![path],
            Self::Members(members) => members.values().map(String::as_str).collect(),
        }
    }
}
