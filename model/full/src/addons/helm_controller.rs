//! helm-controller of k3s: installs the charts of the user's objects of the kind HelmChart, with Helm itself, in jobs.

use super::control_planes::{controller_replicas, tolerations};
use super::crds::{compressed_crds, decompress};
use super::manifest::AddonName;
use super::own::OwnAddon;
use super::{Addon, Error};
use crate::FullSpec;
use node::addons::{HELM_CONTROLLER, HELM_GROUP, ObjectKey};
use serde::Serialize;
use serde_json::Value;
use templates::Template;

/// The controller, and the image of its jobs: what RKE2 has with it.
const VERSION: &str = "v0.17.9";
const JOB_IMAGE: &str = "docker.io/rancher/klipper-helm:v0.13.2-build20260716";

#[derive(Serialize)]
struct Manifest {
    image: String,
    job_image: String,
    replicas: i32,
    tolerations: Vec<Value>,
}

impl Template for Manifest {
    const NAME: &'static str = "helm_controller/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("helm_controller/manifest.yaml.hbs");
}

/// The addon, if the user has an object of its kinds.
pub(super) fn addon(full: &FullSpec, own: &[OwnAddon]) -> Result<Option<Addon>, Error> {
    let mut objects = own.iter().flat_map(|addon| &addon.objects);
    if !objects.any(|own| ObjectKey::of(&own.object).group == HELM_GROUP) {
        return Ok(None);
    }
    let named = AddonName::new(HELM_CONTROLLER, VERSION);
    let manifest = named.render_template(&Manifest {
        image: format!("docker.io/rancher/helm-controller:{VERSION}"),
        job_image: full.images.remap(JOB_IMAGE),
        replicas: controller_replicas(full),
        tolerations: tolerations(full),
    })?;
    let definitions = decompress(named, compressed_crds!("helm_controller"))?;
    named.make_addon(full, &[definitions, manifest]).map(Some)
}
