//! Download sites and registries of a scenario's lab: they are there until the scenario closes them.

use super::Lab;
use crate::content::ServedContent;
use crate::lab_paths::LabPaths;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// What the lab serves as files and as images. Labs share the content, so these are links to it.
pub(super) fn folders(place: &LabPaths) -> [PathBuf; 2] {
    ["mirror", "registry"].map(|name| place.run().join(name))
}

/// The sites with this content are there from now on.
pub(super) fn open(place: &LabPaths, content: &ServedContent) -> Result<()> {
    let served = [content.mirror_folder(), content.registry_folder()];
    for (link, folder) in folders(place).iter().zip(served) {
        symlink(folder, link).with_context(|| format!("making {}", link.display()))?;
    }
    Ok(())
}

impl Lab {
    /// From now on nobody finds the download sites and registries, not even their names. AWS stays.
    pub fn close_sites(&self) -> Result<()> {
        for link in folders(&self.place) {
            fs::remove_file(&link).with_context(|| format!("removing {}", link.display()))?;
        }
        Ok(())
    }

    /// The names that DNS was asked for, in lower case and in their order.
    pub fn names_asked(&self) -> Result<Vec<String>> {
        let path = self.place.run().join("access.log");
        let log = fs::read_to_string(&path);
        let log = log.with_context(|| format!("reading {}", path.display()))?;
        let mut names = Vec::new();
        for line in log.lines() {
            let entry: Value =
                serde_json::from_str(line).with_context(|| format!("reading {line:?}"))?;
            let text = |field: &str| entry.get(field).and_then(Value::as_str);
            if let (Some("dns"), Some(name)) = (text("service"), text("host")) {
                names.push(name.trim_end_matches('.').to_ascii_lowercase());
            }
        }
        Ok(names)
    }
}
