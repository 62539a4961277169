//! Rules that Kubernetes does not come with, and what containers ask for that ask for nothing.

use super::manifest::Named;
use super::{Addon, Error};
use templates::addons::{KubeletApi, LimitRange};

/// kOps': the API server may use all of the kubelets' API.
pub(super) fn kubelet_api() -> Result<Addon, Error> {
    let named = Named::new("kubelet-api.rbac.addons.k8s.io", "k8s-1.9");
    let context = KubeletApi {
        user: "kubelet-api".to_owned(),
    };
    named.addon(&[named.render(&context)?])
}

/// kOps': the namespace `default` without it would let any number of pods onto a node.
pub(super) fn limit_range() -> Result<Addon, Error> {
    let named = Named::new("limit-range.addons.k8s.io", "v1.5.0");
    let context = LimitRange {
        cpu_request: "100m".to_owned(),
    };
    named.addon(&[named.render(&context)?])
}
