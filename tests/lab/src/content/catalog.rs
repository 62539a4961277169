//! The lab's asset catalog: what `spec.assets.catalog` is set to, since what is built here has other hashes than what the
//! projects publish.

use super::mirror::Published;
use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Debug, Default, Serialize)]
struct Section {
    base: String,
    files: Vec<File>,
}

#[derive(Debug, Serialize)]
struct File {
    path: String,
    sha256: String,
}

/// Returns the catalog as YAML.
pub fn catalog_yaml(all: &[Published]) -> Result<String> {
    let mut sections: BTreeMap<&str, Section> = BTreeMap::new();
    for file in all {
        // Paths below a base begin with the version's folder, at every site.
        let folder = format!("/v{}/", file.version);
        let (base, rest) = file
            .url
            .split_once(&folder)
            .with_context(|| format!("{} does not have {folder} in it", file.url))?;
        let section = sections
            .entry(section_of_component(file.component.name()))
            .or_default();
        base.clone_into(&mut section.base);
        section.files.push(File {
            path: format!("v{}/{rest}", file.version),
            sha256: file.sha256.clone(),
        });
    }
    serde_saphyr::to_string(&sections).context("writing the catalog")
}

/// The catalog's section of a component.
fn section_of_component(component: &str) -> &str {
    match component {
        "kubelet" | "kubectl" => "kubernetes",
        other => other,
    }
}
