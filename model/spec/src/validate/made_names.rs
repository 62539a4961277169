//! Names of AWS objects that are made of the names of a cluster's groups: two groups must not make the same.

use super::ClusterInput;
use crate::api::{InstanceGroup, InstanceGroupRole};
use crate::read::{ObjectRef, Problem};
use std::collections::BTreeMap;

/// The name of a group's Auto Scaling group and launch template.
pub fn scaling_group_name(group: &InstanceGroup, cluster: &str) -> String {
    let name = group.name();
    match group.spec.role {
        Some(InstanceGroupRole::ControlPlane) => format!("{name}.masters.{cluster}"),
        Some(InstanceGroupRole::ApiServer) => format!("{name}.apiservers.{cluster}"),
        _ => format!("{name}.{cluster}"),
    }
}

/// The longest value of a label of Kubernetes.
const LABEL_VALUE: usize = 63;

/// The group's name is the value of the label `kops.k8s.io/instancegroup` of its Nodes; kubelet does not start with a longer one.
pub fn check(group: &InstanceGroup, problems: &mut Vec<Problem>) {
    let length = group.name().chars().count();
    if length > LABEL_VALUE {
        let message = format!(
            "the name has {length} characters, and as a label of Nodes it may have {LABEL_VALUE}"
        );
        problems.push(Problem::error("metadata.name", message).hint("use a shorter name"));
    }
}

/// A group `a` of control planes and a group `a.masters` of nodes would have one Auto Scaling group.
pub fn check_set(input: &ClusterInput<'_>, problems: &mut Vec<Problem>) {
    let mut by_name: BTreeMap<String, &InstanceGroup> = BTreeMap::new();
    for group in input.instance_groups {
        let made = scaling_group_name(group, input.cluster.name());
        match by_name.get(&made) {
            // Of one name twice the documents are told elsewhere.
            Some(first) if first.name() != group.name() => {
                let message = format!(
                    "its Auto Scaling group would be {made}, as that of the group {}",
                    first.name()
                );
                let mut problem =
                    Problem::error("metadata.name", message).hint("rename one of them");
                problem.object = Some(ObjectRef {
                    kind: "InstanceGroup".to_owned(),
                    name: group.name().to_owned(),
                    occurrence: 0,
                });
                problems.push(problem);
            }
            Some(_) => {}
            None => {
                by_name.insert(made, group);
            }
        }
    }
}
