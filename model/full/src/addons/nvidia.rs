//! GPUs of NVIDIA: the device plugin, which lets pods ask for them, the RuntimeClass, and metrics. Driver and runtime are packages of
//! the instances.

use super::manifest::AddonName;
use super::{Addon, Error};
use crate::FullSpec;
use serde::{Deserialize, Serialize};
use templates::Template;

/// Settings of the device plugin: `spec.containerd.nvidiaGPU`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NvidiaDevicePlugin {
    pub image: String,
    /// The DCGM exporter runs: metrics of each GPU on port 9400.
    pub exporter: bool,
    /// SELinux is enabled for containers.
    pub selinux: bool,
}

impl Template for NvidiaDevicePlugin {
    const NAME: &'static str = "nvidia/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("nvidia/manifest.yaml.hbs");
}

pub(super) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let Some(plugin) = &full.addons.nvidia else {
        return Ok(None);
    };
    let named = AddonName::new("nvidia.addons.k8s.io", "k8s-1.16");
    let manifest = named.render_template(plugin)?;
    named.make_addon(full, &[manifest]).map(Some)
}
