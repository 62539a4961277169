//! Labels that the control plane gives Nodes, because kubelet may not: those of roles, and those that the group's
//! machines carry as tags.

use crate::names::INSTANCE_GROUP_TAG;
use std::collections::BTreeMap;

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

#[cfg(test)]
mod tests {
    use super::*;

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
