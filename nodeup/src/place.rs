//! Where nodeup's own things and those it looks at lie, under a root that is `/` but for machines that do not run yet.

use node::config::DIRECTORY;
use std::path::{Path, PathBuf};

/// The root of a machine.
#[derive(Clone, Debug)]
pub struct Place(PathBuf);

impl Place {
    /// That folder is the root.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self(root.into())
    }

    /// The root itself.
    pub fn root(&self) -> &Path {
        &self.0
    }

    /// Where an absolute path of the machine lies.
    pub fn of(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// NodeConfig's text, once it was verified.
    pub fn node_config(&self) -> PathBuf {
        self.of(DIRECTORY).join("node-config.yaml")
    }

    /// Downloads, each called as its sha256.
    pub fn cache(&self) -> PathBuf {
        self.of(DIRECTORY).join("cache")
    }

    /// The private keys that a worker asks certificates for.
    pub fn keys(&self) -> PathBuf {
        self.of(DIRECTORY).join("keys")
    }
}
