//! gVisor: the RuntimeClass by which pods ask for it. Its programs are packages of the instances.

use super::manifest::AddonName;
use super::{Addon, Error};
use crate::{FullSpec, NodeSettings};
use serde::Serialize;
use templates::Template;

#[derive(Serialize)]
struct Manifest {}

impl Template for Manifest {
    const NAME: &'static str = "gvisor/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("gvisor/manifest.yaml.hbs");
}

pub(super) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let mut nodes = full.groups.iter().filter_map(|group| group.node.as_ref());
    let has_gvisor = |node: &NodeSettings| node.containerd.gvisor.is_some();
    if !nodes.any(has_gvisor) {
        return Ok(None);
    }
    let named = AddonName::new("gvisor.addons.k8s.io", "k8s-1.20");
    let manifest = named.render_template(&Manifest {})?;
    named.make_addon(full, &[manifest]).map(Some)
}
