//! What mirror and images are put together from: every program that was built, and Debian's.

use super::build::Built;
use super::debian::Debian;
use anyhow::{Context, Result};
use std::path::PathBuf;

/// All parts.
#[derive(Debug, Clone)]
pub struct Kit {
    pub built: Vec<Built>,
    pub debian: Debian,
    /// Certificates (PEM) that programs in images trust; none: they trust nobody.
    pub roots: Option<String>,
}

impl Kit {
    /// Path of a program, by its module and name.
    pub fn program(&self, module: &str, name: &str) -> Result<PathBuf> {
        let built = self.module(module)?;
        let known = built
            .module
            .binaries
            .iter()
            .any(|binary| binary.name == name);
        known
            .then(|| built.program(name))
            .with_context(|| format!("{module} has no program {name}"))
    }

    /// Version of a module, without `v`.
    pub fn version(&self, module: &str) -> Result<&str> {
        Ok(&self.module(module)?.version)
    }

    fn module(&self, name: &str) -> Result<&Built> {
        let found = self.built.iter().find(|built| built.module.name == name);
        found.with_context(|| format!("{name} is not built"))
    }
}
