//! The tags of an instance group: on its Auto Scaling group, its launch template, and everything launched from it.

use crate::{FullSpec, Group};
use cloud::Tags;
use node::config::Role;
use node::names;

/// Prefix of the tags from which the cluster autoscaler learns labels and taints of nodes in an empty group.
const NODE_TEMPLATE: &str = "k8s.io/cluster-autoscaler/node-template";
/// The taint of every control plane, which the autoscaler does not need.
const CONTROL_PLANE_TAINT: &str = "node-role.kubernetes.io/control-plane";

/// The tags of a group. The user's labels come first; tags that kctl needs win over them.
pub(super) fn instance_group_tags(full: &FullSpec, group: &Group) -> Tags {
    let name = names::autoscaling_group(&full.name, &group.name, group.role);
    let mut tags = crate::cluster_tags(full, &name);
    tags.extend(group.cloud_labels.clone());
    for (label, value) in &group.node_labels {
        tags.insert(format!("{NODE_TEMPLATE}/label/{label}"), value.clone());
    }
    for (key, value) in group
        .taints
        .iter()
        .filter_map(|taint| taint.split_once('='))
    {
        if key != CONTROL_PLANE_TAINT {
            tags.insert(format!("{NODE_TEMPLATE}/taint/{key}"), value.to_owned());
        }
    }
    for role in role_tags(group.role) {
        tags.insert(format!("k8s.io/role/{role}"), "1".into());
    }
    tags.insert(names::INSTANCE_GROUP_TAG.into(), group.name.clone());
    tags.extend(crate::cluster_tags(full, &name));
    if let Some(termination) = &full.node_termination {
        // A tag that is there for another reason marks the instances as well.
        tags.entry(termination.managed_tag.clone()).or_default();
    }
    tags
}

fn role_tags(role: Role) -> &'static [&'static str] {
    match role {
        Role::ControlPlane => &["control-plane", "master"],
        Role::Node => &["node"],
        Role::Bastion => &["bastion"],
    }
}
