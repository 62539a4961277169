//! What mirror and images are put together from: every program that was built, and Debian's.

use super::build::BuiltModule;
use super::debian::Debian;
use anyhow::{Context, Result};
use std::path::PathBuf;

/// Everything that images and downloads are made of.
#[derive(Debug, Clone)]
pub struct ContentKit {
    pub built: Vec<BuiltModule>,
    pub debian: Debian,
    /// What cilium's agent runs, if cilium is built.
    pub cilium: Option<Debian>,
    /// What the images of conformance tests have, if these are built.
    pub conformance: Option<Debian>,
    /// Certificates (PEM) that programs in images trust; none: they trust nobody.
    pub roots: Option<String>,
}

impl ContentKit {
    /// Path of a program, by its module and name.
    pub fn program_path(&self, module: &str, name: &str) -> Result<PathBuf> {
        let built = self.find_module(module)?;
        let known = built
            .module
            .binaries
            .iter()
            .any(|binary| binary.name == name);
        known
            .then(|| built.program_path(name))
            .with_context(|| format!("{module} has no program {name}"))
    }

    /// Version of a module, without `v`.
    pub fn module_version(&self, module: &str) -> Result<&str> {
        Ok(&self.find_module(module)?.version)
    }

    /// Every build of Kubernetes.
    pub fn kubernetes_builds(&self) -> impl Iterator<Item = &BuiltModule> {
        self.built
            .iter()
            .filter(|built| built.module.is_kubernetes())
    }

    /// A module that was built.
    pub fn find_module(&self, name: &str) -> Result<&BuiltModule> {
        let found = self.built.iter().find(|built| built.module.name == name);
        found.with_context(|| format!("{name} is not built"))
    }
}
