//! The StorageClasses that kOps makes. The default one makes encrypted gp3 volumes where the pod is.

use super::manifest::AddonName;
use super::{Addon, Error};
use crate::FullSpec;
use serde::Serialize;
use templates::Template;

#[derive(Serialize)]
struct Manifest {}

impl Template for Manifest {
    const NAME: &'static str = "storage_classes/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("storage_classes/manifest.yaml.hbs");
}

pub(super) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    if !full.addons.storage_classes {
        return Ok(None);
    }
    let named = AddonName::new("storage-aws.addons.k8s.io", "v1.15.0");
    let manifest = named.render_template(&Manifest {})?;
    named.make_addon(full, &[manifest]).map(Some)
}
