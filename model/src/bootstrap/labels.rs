//! Labels that the control plane gives Nodes, because kubelet may not: those of roles, and those that the group's
//! machines carry as tags.

use crate::names::INSTANCE_GROUP_TAG;
use std::collections::{BTreeMap, BTreeSet};

/// Roles of machines, present and former ones of kOps. Pods of the control plane follow them.
const ROLES: &[&str] = &["api-server", "control-plane", "master", "node"];

/// Tags that say labels, as the cluster autoscaler reads them.
const NODE_TEMPLATE_LABEL: &str = "k8s.io/cluster-autoscaler/node-template/label/";

/// Labels of the Node of an instance with these tags.
pub fn node_labels(tags: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let label = |(key, value): (&String, &String)| {
        let label = key.strip_prefix(NODE_TEMPLATE_LABEL)?;
        Some((label.to_owned(), value.clone()))
    };
    let mut labels: BTreeMap<String, String> = tags.iter().filter_map(label).collect();
    for role in ["control-plane", "node"] {
        if tags.contains_key(&format!("k8s.io/role/{role}")) {
            labels
                .entry(format!("node-role.kubernetes.io/{role}"))
                .or_default();
        }
    }
    if let Some(group) = tags.get(INSTANCE_GROUP_TAG) {
        labels.insert(INSTANCE_GROUP_TAG.to_owned(), group.clone());
    }
    labels
}

/// Labels that the Node of an instance with these tags must not have: those of roles that the tags do not name. None if they
/// name no role at all, which is no answer.
pub fn foreign_labels(tags: &BTreeMap<String, String>) -> BTreeSet<String> {
    let named = |role: &&&str| tags.contains_key(&format!("k8s.io/role/{role}"));
    if !ROLES.iter().any(|role| named(&role)) {
        return BTreeSet::new();
    }
    let wanted = node_labels(tags);
    let others = ROLES.iter().filter(|role| !named(role));
    let labels = others.map(|role| format!("node-role.kubernetes.io/{role}"));
    labels.filter(|label| !wanted.contains_key(label)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_no_role_that_the_tags_do_not_name() {
        let of = |tags: &[&str]| {
            let tags = tags.iter().map(|tag| ((*tag).to_owned(), "1".to_owned()));
            let labels = foreign_labels(&tags.collect());
            let role = |label: &String| label.rsplit('/').next().unwrap().to_owned();
            labels.iter().map(role).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of(&["k8s.io/role/node"]), "api-server control-plane master");
        assert_eq!(
            of(&["k8s.io/role/control-plane", "k8s.io/role/master"]),
            "api-server node"
        );
        let wanted = format!("{NODE_TEMPLATE_LABEL}node-role.kubernetes.io/node");
        assert_eq!(
            of(&["k8s.io/role/control-plane", &wanted]),
            "api-server master"
        );
        assert_eq!(of(&["Name"]), "", "tags that have not come yet");
    }

    #[test]
    fn labels_come_from_tags_and_the_role() {
        let tags = [
            ("k8s.io/cluster-autoscaler/node-template/label/disk", "fast"),
            (
                "k8s.io/cluster-autoscaler/node-template/taint/a",
                "b:NoSchedule",
            ),
            ("k8s.io/role/control-plane", "1"),
            ("k8s.io/role/master", "1"),
            ("kops.k8s.io/instancegroup", "control-plane-a"),
            ("Name", "n"),
        ];
        let tags = tags
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        let expected = [
            ("disk", "fast"),
            ("kops.k8s.io/instancegroup", "control-plane-a"),
            ("node-role.kubernetes.io/control-plane", ""),
        ];
        let expected: BTreeMap<String, String> = expected
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        assert_eq!(node_labels(&tags), expected);
    }
}
