//! Paths of nodeup's files below the root folder, which is `/` except in tests and offline runs.

use node::config::DIRECTORY;
use std::path::{Path, PathBuf};

/// Paths below a root folder.
#[derive(Clone, Debug)]
pub struct NodeupPaths(PathBuf);

impl NodeupPaths {
    /// Paths below this root folder.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self(root.into())
    }

    pub fn root(&self) -> &Path {
        &self.0
    }

    /// The path below the root folder of an absolute path on the instance.
    pub fn path_below_root(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    pub fn node_config(&self) -> PathBuf {
        self.path_below_root(DIRECTORY).join("node-config.yaml")
    }

    /// Folder with downloads, each named after its sha256.
    pub fn cache_folder(&self) -> PathBuf {
        self.path_below_root(DIRECTORY).join("cache")
    }

    /// Written once Auto Scaling has put the instance into service, because it waited for it.
    pub fn in_service(&self) -> PathBuf {
        self.path_below_root(DIRECTORY).join("in-service")
    }

    /// cloud-init writes it when the scripts of user data have run, and deletes it at the next boot.
    pub fn boot_finished(&self) -> PathBuf {
        self.path_below_root("/var/lib/cloud/instance/boot-finished")
    }

    /// Folder with the private keys of a worker's certificate requests.
    pub fn keys_folder(&self) -> PathBuf {
        self.path_below_root(DIRECTORY).join("keys")
    }
}
