//! Addons whose pods run on control planes, because no worker is to have their tokens.

use crate::FullSpec;
use node::config::Role;
use serde_json::{Value, json};

/// Taints that control planes have in kOps, now or formerly.
const ROLE_TAINTS: [&str; 2] = [
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
];

/// Tolerations of the taints that control planes have, also of those of the spec. Not of any taint: that would bring a pod back to the
/// node from which it was drained.
pub(super) fn tolerations(full: &FullSpec) -> Vec<Value> {
    let groups = full.groups.iter();
    let groups = groups.filter(|group| group.role == Role::ControlPlane);
    let mut keys: Vec<&str> = ROLE_TAINTS.into();
    for taint in groups.flat_map(|group| &group.taints) {
        let key = taint.split([':', '=']).next().unwrap_or_default();
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let all = keys.iter();
    all.map(|key| json!({"key": key, "operator": "Exists"}))
        .collect()
}

/// `true` if a controller must be on the network of its instance to get the instance's role; `None`: its service account has a role.
pub(super) fn needs_host_network(full: &FullSpec) -> Option<bool> {
    (!full.addons_have_roles()).then_some(true)
}

/// How a controller on the network of its instance is replaced: two pods cannot have the same port there. `None`: as by default.
pub(super) fn rollout_strategy(full: &FullSpec) -> Option<Value> {
    let by_turns = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}});
    needs_host_network(full).map(|_| by_turns)
}

/// Replicas of a controller that elects a leader, as in kOps: two where there are several control planes.
pub(super) fn controller_replicas(full: &FullSpec) -> i32 {
    let groups = full.groups.iter();
    let control_planes = groups.filter(|group| group.role == Role::ControlPlane);
    control_planes
        .map(|group| group.min_size)
        .sum::<i32>()
        .clamp(1, 2)
}
