//! The components that kctl deploys into a cluster: access rules, the network, DNS, the cloud controller manager. They are
//! made from the full spec as plain objects; kctl stores them, and protokube applies them in this order.

mod channel;
mod cloud_controller;
mod core_dns;
mod flannel;
mod manifest;
mod rbac;

pub use channel::{channel, manifest_key};

use crate::FullSpec;
use node::addons::NotAManifest;
use serde_json::Value;

/// An addon.
#[derive(Clone, Debug, PartialEq)]
pub struct Addon {
    /// kOps' name where kOps has it: `coredns.addons.k8s.io`.
    pub name: &'static str,
    /// Which of its manifests this is: kOps' ids, `k8s-1.12`.
    pub id: &'static str,
    /// A label that all of its objects carry, as kOps has it.
    pub selector: (&'static str, &'static str),
    /// Its objects, in the order in which they are applied.
    pub objects: Vec<Value>,
    /// The same as YAML documents: what is stored.
    pub manifest: String,
    /// sha256 (hex) of that.
    pub sha256: String,
}

/// Why an addon could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its template could not be rendered.
    #[error("addon {addon}")]
    Template {
        /// Which addon.
        addon: &'static str,
        /// Why.
        #[source]
        source: templates::Error,
    },
    /// What was rendered is no list of objects.
    #[error(transparent)]
    Manifest(#[from] NotAManifest),
    /// An object could not be written as YAML.
    #[error("could not write YAML")]
    Yaml(#[from] node::yaml::Error),
}

/// The addons of a cluster, in the order in which they are applied: what others need first.
pub fn addons(full: &FullSpec) -> Result<Vec<Addon>, Error> {
    let mut addons = vec![rbac::kubelet_api()?, rbac::limit_range()?];
    addons.extend(rbac::node_registration(full)?);
    if let Some(flannel) = &full.addons.flannel {
        addons.push(flannel::addon(full, flannel)?);
    }
    if let Some(core_dns) = &full.addons.core_dns {
        addons.push(core_dns::addon(full, core_dns)?);
    }
    addons.push(cloud_controller::addon(
        &full.addons.cloud_controller_manager,
    )?);
    Ok(addons)
}
