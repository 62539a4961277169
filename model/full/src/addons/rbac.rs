//! Rules that Kubernetes does not come with, and what containers ask for that ask for nothing.

use crate::addons::manifest::Named;
use crate::addons::{Addon, Error};
use crate::{FullSpec, NodeSettings};
use templates::addons::{KubeletApi, LimitRange, NodeRegistration};

/// kOps': the API server may use all of the kubelets' API.
pub(super) fn kubelet_api() -> Result<Addon, Error> {
    let named = Named::new("kubelet-api.rbac.addons.k8s.io", "k8s-1.9");
    let context = KubeletApi {
        user: "kubelet-api".to_owned(),
    };
    named.addon(&[named.render(&context)?])
}

/// Nodes are made with the taint that only the cloud controller manager takes away. `None` where a group's kubelets are told of
/// another cloud provider than `external`, and make their Nodes without it.
pub(super) fn node_registration(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let external =
        |node: &NodeSettings| node.kubelet.flags.get("cloud-provider") == Some("external");
    let mut nodes = full.groups.iter().filter_map(|group| group.node.as_ref());
    if !nodes.all(external) {
        return Ok(None);
    }
    let named = Named::new("node-registration.kctl.dev", "v1");
    let addon = named.addon(&[named.render(&NodeRegistration {})?])?;
    Ok(Some(addon))
}

/// kOps': the namespace `default` without it would let any number of pods onto a node.
pub(super) fn limit_range() -> Result<Addon, Error> {
    let named = Named::new("limit-range.addons.k8s.io", "v1.5.0");
    let context = LimitRange {
        cpu_request: "100m".to_owned(),
    };
    named.addon(&[named.render(&context)?])
}
