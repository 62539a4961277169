//! Labels and taints of Nodes.

use crate::api::{InstanceGroup, InstanceGroupRole};
use std::collections::BTreeMap;

/// The taint that keeps pods off control planes.
const CONTROL_PLANE_TAINT: &str = "node-role.kubernetes.io/control-plane=:NoSchedule";

/// The labels of every Node of a role. kubelet may not set role labels on its own Node, so the control
/// plane sets them. The group's name is not among them: it is read from the instance's tag.
fn role_labels(role: InstanceGroupRole) -> &'static [&'static str] {
    match role {
        InstanceGroupRole::ControlPlane => &[
            "kops.k8s.io/kops-controller-pki",
            "node-role.kubernetes.io/control-plane",
            "node.kubernetes.io/exclude-from-external-load-balancers",
        ],
        InstanceGroupRole::Node => &["node-role.kubernetes.io/node"],
        InstanceGroupRole::Bastion | InstanceGroupRole::ApiServer => &[],
    }
}

/// Labels of a group's Nodes: those of the role, of kubelet and of the group. Later ones win.
pub(super) fn node_labels(
    group: &InstanceGroup,
    role: InstanceGroupRole,
) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    for label in role_labels(role) {
        labels.insert((*label).to_owned(), String::new());
    }
    if role == InstanceGroupRole::Bastion {
        return group.spec.node_labels.clone();
    }
    if let Some(kubelet) = &group.spec.kubelet {
        labels.extend(kubelet.node_labels.clone());
    }
    labels.extend(group.spec.node_labels.clone());
    labels
}

/// Adds the control-plane taint to control-plane groups without taints.
pub(super) fn fill_taints(group: &mut InstanceGroup) {
    let control_plane = group.spec.role == Some(InstanceGroupRole::ControlPlane);
    if control_plane && node_taints(group).is_empty() {
        group.spec.taints.push(CONTROL_PLANE_TAINT.to_owned());
    }
}

/// Taints of a group's Nodes: kubelet's and the group's, each once.
pub(super) fn node_taints(group: &InstanceGroup) -> Vec<String> {
    let kubelet = group.spec.kubelet.iter();
    let kubelet = kubelet.flat_map(|kubelet| &kubelet.taints);
    let mut taints: Vec<String> = Vec::new();
    for taint in kubelet.chain(&group.spec.taints) {
        if !taints.contains(taint) {
            taints.push(taint.clone());
        }
    }
    taints
}
