//! Rules that Kubernetes does not come with, and what containers ask for that ask for nothing.

use super::manifest::Named;
use super::{Addon, Error};
use crate::api::{InstanceGroup, InstanceGroupRole};
use crate::expand::Expanded;
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
pub(super) fn node_registration(expanded: &Expanded) -> Result<Option<Addon>, Error> {
    let external = |group: &InstanceGroup| {
        let kubelet = group.spec.kubelet.as_ref();
        kubelet.and_then(|kubelet| kubelet.cloud_provider.as_deref()) == Some("external")
    };
    let machines = |group: &&InstanceGroup| group.spec.role != Some(InstanceGroupRole::Bastion);
    if !expanded.groups.iter().filter(machines).all(external) {
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
