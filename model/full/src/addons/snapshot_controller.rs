//! The snapshot controller: makes snapshots of volumes for objects of the kind VolumeSnapshot, with the sidecar of the EBS CSI driver.

use super::control_planes::controller_replicas;
use super::crds::{compressed_crds, decompress};
use super::manifest::AddonName;
use super::{Addon, Error};
use crate::FullSpec;
use serde::{Deserialize, Serialize};
use templates::Template;

const VERSION: &str = "v6.0.1";

/// Settings of the snapshot controller: `spec.snapshotController`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotController {
    /// There is a VolumeSnapshotClass, which is the default.
    pub default_class: bool,
}

#[derive(Serialize)]
struct Manifest {
    version: String,
    cluster: String,
    replicas: i32,
    default_class: bool,
}

impl Template for Manifest {
    const NAME: &'static str = "snapshot_controller/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("snapshot_controller/manifest.yaml.hbs");
}

pub(super) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let Some(controller) = &full.addons.snapshot_controller else {
        return Ok(None);
    };
    let named = AddonName::new("snapshot-controller.addons.k8s.io", "k8s-1.20");
    let manifest = named.render_template(&Manifest {
        version: VERSION.to_owned(),
        cluster: full.name.clone(),
        replicas: controller_replicas(full),
        default_class: controller.default_class,
    })?;
    let definitions = decompress(named, compressed_crds!("snapshot_controller"))?;
    named.make_addon(full, &[definitions, manifest]).map(Some)
}
