//! Access rules that Kubernetes does not bring, and default requests of containers.

use crate::addons::manifest::AddonName;
use crate::addons::{Addon, Error};
use crate::{FullSpec, NodeSettings};
use node::protokube;
use templates::addons::{KubeletApi, LimitRange, NodeRegistration, ProtokubeAccess};

/// Grants protokube what its roles call.
pub(super) fn protokube_access(full: &FullSpec) -> Result<Addon, Error> {
    let named = AddonName::new(protokube::ACCESS_ADDON, "v1");
    let context = ProtokubeAccess {
        group: protokube::GROUP.to_owned(),
        lease: protokube::TERMINATION_LEASE.to_owned(),
        addon_record: protokube::ADDON_RECORD.to_owned(),
        object_names: full.dns.object_names.is_some(),
        ingress_names: full
            .dns
            .object_names
            .is_some_and(|names| names.watch_ingress),
    };
    named.make_addon(full, &[named.render_template(&context)?])
}

/// Lets the API server use the whole API of kubelets, as in kOps.
pub(super) fn kubelet_api(full: &FullSpec) -> Result<Addon, Error> {
    let named = AddonName::new("kubelet-api.rbac.addons.k8s.io", "k8s-1.9");
    let context = KubeletApi {
        user: "kubelet-api".to_owned(),
    };
    named.make_addon(full, &[named.render_template(&context)?])
}

/// Requires that Nodes are created with the taint that only the cloud controller manager removes. `None` if kubelets of a group
/// have another cloud provider than `external`: they create their Nodes without the taint.
pub(super) fn node_registration(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let external =
        |node: &NodeSettings| node.kubelet.flags.get("cloud-provider") == Some("external");
    let mut nodes = full.groups.iter().filter_map(|group| group.node.as_ref());
    if !nodes.all(external) {
        return Ok(None);
    }
    let named = AddonName::new("node-registration.kctl.dev", "v1");
    let addon = named.make_addon(full, &[named.render_template(&NodeRegistration {})?])?;
    Ok(Some(addon))
}

/// Default CPU request of containers in the namespace `default`, as in kOps. Without it, any number of pods fits onto a node.
pub(super) fn limit_range(full: &FullSpec) -> Result<Addon, Error> {
    let named = AddonName::new("limit-range.addons.k8s.io", "v1.5.0");
    let context = LimitRange {
        cpu_request: "100m".to_owned(),
    };
    named.make_addon(full, &[named.render_template(&context)?])
}
