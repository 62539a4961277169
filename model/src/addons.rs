//! What a cluster runs of itself: access rules, the network, DNS, the cloud controller manager. Made from the completed
//! spec as plain objects; kctl stores them, protokube applies them in this order.

mod channel;
mod cloud_controller;
mod core_dns;
mod flannel;
mod manifest;
mod rbac;

pub use channel::{CHANNEL_KEY, Channel, ChannelAddon, channel, manifest_key, read_channel};
pub use manifest::read_manifest;

use crate::components;
use crate::expand::Expanded;
use crate::full::Networking;
use serde_json::Value;

/// The label that names the addon an object belongs to. kOps': on a cluster that kOps made, objects of the addons that
/// both have go on with the label they carry.
pub const ADDON_LABEL: &str = "addon.kops.k8s.io/name";

/// The label that says who owns an object of an addon. kOps writes `kops`: what it took back is not ours to remove.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";

/// Its value for ours, which is also the field manager's name.
pub const MANAGER: &str = "kctl";

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
    /// Flags could not be made.
    #[error("addon {addon}")]
    Flags {
        /// Which addon.
        addon: &'static str,
        /// Why.
        #[source]
        source: components::Error,
    },
    /// What was rendered, or stored, is no list of objects.
    #[error("{what} is not a manifest: {why}")]
    Manifest {
        /// The addon's name, or the key in the store.
        what: String,
        /// What is wrong, and where.
        why: String,
    },
    /// An object could not be written as YAML.
    #[error("could not write YAML")]
    Yaml(#[from] crate::api::write::Error),
}

/// The addons of a cluster, in the order in which they are applied: what others need first.
pub fn addons(expanded: &Expanded) -> Result<Vec<Addon>, Error> {
    let spec = &expanded.cluster.spec;
    let mut addons = vec![rbac::kubelet_api()?, rbac::limit_range()?];
    addons.extend(rbac::node_registration(expanded)?);
    if let Networking::Flannel(backend) = &expanded.full.pods.networking {
        addons.push(flannel::addon(expanded, backend)?);
    }
    addons.extend(core_dns::addon(expanded)?);
    addons.push(cloud_controller::addon(spec)?);
    Ok(addons)
}
