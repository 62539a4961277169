//! The addons: access rules, network, DNS, cloud controller manager, volumes, and those that a spec turns on. They are built from the full spec as Kubernetes objects; kctl
//! stores them, and protokube applies them in this order. Each has a file with its settings, its objects and its AWS permissions, and
//! where it has a manifest a folder with that.

pub(crate) mod amazon_vpc;
pub(crate) mod aws_iam_authenticator;
pub(crate) mod calico;
pub(crate) mod cert_manager;
mod channel;
pub(crate) mod cilium;
mod cloud_controller;
pub(crate) mod cluster_autoscaler;
mod control_planes;
mod core_dns;
mod crds;
pub(crate) mod ebs_csi_driver;
pub(crate) mod external_dns;
mod flannel;
mod gvisor;
mod helm_controller;
mod identity;
pub(crate) mod kindnet;
pub(crate) mod kube_router;
pub(crate) mod load_balancer_controller;
mod manifest;
pub(crate) mod metrics_server;
pub(crate) mod node_local_dns;
pub(crate) mod node_problem_detector;
pub(crate) mod nvidia;
mod own;
mod permissions;
pub(crate) mod pod_identity_webhook;
mod rbac;
pub(crate) mod snapshot_controller;
mod storage_classes;
mod tags;
pub(crate) mod values;

pub(crate) use calico::permissions_of_agents;
pub use cert_manager::VERSION as CERT_MANAGER;
pub use channel::{channel_yaml, manifest_key};
pub use cilium::ipsec::add_ipsec_key;
pub use own::{CLUSTER_ADDONS, OwnAddon, OwnError, add_own_addons};
pub(crate) use permissions::{NAMESPACE as ADDON_NAMESPACE, addon_roles, permissions_of_instances};
pub use values::find_misfits;

use crate::FullSpec;
use node::addons::NotAManifest;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub struct Addon {
    /// The name, as in kOps if kOps has the addon: `coredns.addons.k8s.io`.
    pub name: String,
    /// kOps' id of the manifest: `k8s-1.12`.
    pub id: String,
    /// The label that all of its objects carry, as in kOps.
    pub selector: (String, String),
    /// Its objects, in the order in which they are applied.
    pub objects: Vec<Value>,
    /// The objects as YAML documents, which are stored.
    pub manifest: String,
    /// sha256 (hex) of `manifest`.
    pub sha256: String,
    /// `manifest` as it may be shown, if that is something else: without what Secrets hold.
    pub shown: Option<String>,
}

/// An addon could not be built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its template could not be rendered.
    #[error("addon {addon}")]
    Template {
        addon: &'static str,
        #[source]
        source: templates::Error,
    },
    /// Its CustomResourceDefinitions could not be decompressed.
    #[error("CustomResourceDefinitions of addon {addon}")]
    Definitions {
        addon: &'static str,
        #[source]
        source: std::io::Error,
    },
    /// The rendered text is not a list of Kubernetes objects.
    #[error(transparent)]
    Manifest(#[from] NotAManifest),
    /// The user's values do not fit it.
    #[error("spec.addonValues")]
    Values(#[from] values::Misfit),
    /// An object could not be written as YAML.
    #[error("could not write YAML")]
    Yaml(#[from] node::yaml::Error),
    /// Settings could not be written as JSON.
    #[error("could not write JSON")]
    Json(#[from] serde_json::Error),
}

/// The addons of a cluster, in the order in which they are applied: prerequisites first.
pub fn make_addons(full: &FullSpec) -> Result<Vec<Addon>, Error> {
    let mut addons = vec![
        rbac::protokube_access(full)?,
        rbac::kubelet_api(full)?,
        rbac::limit_range(full)?,
    ];
    addons.extend(rbac::node_registration(full)?);
    if let Some(flannel) = &full.addons.flannel {
        addons.push(flannel::flannel_addon(full, flannel)?);
    }
    addons.extend(calico::addon(full)?);
    addons.extend(cilium::addon(full)?);
    addons.extend(amazon_vpc::addon(full)?);
    addons.extend(kube_router::addon(full)?);
    addons.extend(kindnet::addon(full)?);
    if let Some(core_dns) = &full.addons.core_dns {
        addons.push(core_dns::core_dns_addon(full, core_dns)?);
    }
    addons.extend(node_local_dns::addon(full)?);
    addons.extend(external_dns::addon(full)?);
    addons.push(cloud_controller::cloud_controller_addon(full)?);
    addons.extend(aws_iam_authenticator::addon(full)?);
    addons.extend(storage_classes::addon(full)?);
    addons.extend(ebs_csi_driver::addon(full)?);
    addons.extend(node_problem_detector::addon(full)?);
    addons.extend(nvidia::addon(full)?);
    addons.extend(gvisor::addon(full)?);
    addons.extend(cert_manager::addon(full)?);
    addons.extend(cilium::hubble::addon(full)?);
    addons.extend(cilium::gateways::addon(full)?);
    addons.extend(snapshot_controller::addon(full)?);
    addons.extend(cluster_autoscaler::addon(full)?);
    addons.extend(metrics_server::addon(full)?);
    addons.extend(load_balancer_controller::addon(full)?);
    addons.extend(pod_identity_webhook::addon(full)?);
    Ok(addons)
}
