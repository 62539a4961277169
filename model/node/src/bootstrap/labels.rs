//! Labels that the control plane sets on Nodes because kubelet may not: those of roles, and those in the tags of the group's
//! instances.

use crate::names::INSTANCE_GROUP_TAG;
use std::collections::{BTreeMap, BTreeSet};

/// Present and former roles of kOps. Pods of the control plane select nodes by them.
const ROLES: &[&str] = &["api-server", "control-plane", "master", "node"];

/// Prefix of role labels.
const ROLE_LABEL: &str = "node-role.kubernetes.io/";

/// Prefix of tags that define labels, as the cluster autoscaler reads them.
const NODE_TEMPLATE_LABEL: &str = "k8s.io/cluster-autoscaler/node-template/label/";

/// The properties of an instance from which the labels of its Node are derived.
#[derive(Clone, Copy, Debug)]
pub struct LabelSource<'a> {
    /// Tags. Anyone with the permission to tag instances can set them.
    pub tags: &'a BTreeMap<String, String>,
    /// True if the instance has the instance profile of the cluster's nodes. Then it is a worker, whatever its tags say.
    pub profile_of_nodes: bool,
}

impl LabelSource<'_> {
    fn has_tag(self, role: &str) -> bool {
        self.tags.contains_key(&format!("k8s.io/role/{role}"))
    }

    /// True if the instance has the role.
    fn has_role(self, role: &str) -> bool {
        self.has_tag(role) && (role == "node" || !self.profile_of_nodes)
    }

    /// True if tags may set the label. Role labels other than that of nodes are reserved for control planes.
    fn may_say(self, label: &str) -> bool {
        let role = label.strip_prefix(ROLE_LABEL);
        let role = role.filter(|role| *role != "node" && ROLES.contains(role));
        role.is_none() || self.has_role("control-plane")
    }
}

/// The labels that the Node must have.
pub fn node_labels(of: LabelSource<'_>) -> BTreeMap<String, String> {
    let tags = of.tags;
    let label = |(key, value): (&String, &String)| {
        let label = key.strip_prefix(NODE_TEMPLATE_LABEL)?;
        of.may_say(label).then(|| (label.to_owned(), value.clone()))
    };
    let mut labels: BTreeMap<String, String> = tags.iter().filter_map(label).collect();
    for role in ["control-plane", "node"] {
        if of.has_role(role) {
            labels.entry(format!("{ROLE_LABEL}{role}")).or_default();
        }
    }
    if let Some(group) = tags.get(INSTANCE_GROUP_TAG) {
        labels.insert(INSTANCE_GROUP_TAG.to_owned(), group.clone());
    }
    labels
}

/// The labels that the Node must not have: those of roles that the instance does not have. Empty if the tags name no role at all,
/// because the tags may not be complete yet.
pub fn foreign_labels(of: LabelSource<'_>) -> BTreeSet<String> {
    if !ROLES.iter().any(|role| of.has_tag(role)) {
        return BTreeSet::new();
    }
    let wanted = node_labels(of);
    let others = ROLES.iter().filter(|role| !of.has_role(role));
    let labels = others.map(|role| format!("{ROLE_LABEL}{role}"));
    labels.filter(|label| !wanted.contains_key(label)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_any_profile(tags: &BTreeMap<String, String>) -> LabelSource<'_> {
        LabelSource {
            tags,
            profile_of_nodes: false,
        }
    }

    #[test]
    fn tags_make_no_control_plane_of_a_machine_with_the_profile_of_nodes() {
        let template = |label: &str| format!("{NODE_TEMPLATE_LABEL}{label}");
        let tags: BTreeMap<String, String> = [
            "k8s.io/role/node",
            "k8s.io/role/control-plane",
            "k8s.io/role/api-server",
            &template("node-role.kubernetes.io/control-plane"),
            &template("node-role.kubernetes.io/master"),
            &template("node-role.kubernetes.io/gpu"),
        ]
        .map(|key| (key.to_owned(), String::new()))
        .into();
        let worker = LabelSource {
            tags: &tags,
            profile_of_nodes: true,
        };
        let roles = |labels: Vec<&String>| -> Vec<String> {
            let role = |label: &&String| label.strip_prefix(ROLE_LABEL).map(str::to_owned);
            labels.iter().filter_map(role).collect()
        };
        assert_eq!(roles(node_labels(worker).keys().collect()), ["gpu", "node"]);
        let taken = foreign_labels(worker);
        assert_eq!(
            roles(taken.iter().collect()),
            ["api-server", "control-plane", "master"]
        );
        // The same tags on an instance with another profile.
        let other = node_labels(with_any_profile(&tags));
        assert_eq!(
            roles(other.keys().collect()),
            ["control-plane", "gpu", "master", "node"]
        );
        // A worker's tags alone say no label of the control plane either.
        let mut tags = tags;
        tags.remove("k8s.io/role/control-plane");
        assert_eq!(
            roles(node_labels(with_any_profile(&tags)).keys().collect()),
            ["gpu", "node"]
        );
    }

    #[test]
    fn a_node_has_no_role_that_the_tags_do_not_name() {
        let of = |tags: &[&str]| {
            let tags = tags.iter().map(|tag| ((*tag).to_owned(), "1".to_owned()));
            let labels = foreign_labels(with_any_profile(&tags.collect()));
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
        assert_eq!(node_labels(with_any_profile(&tags)), expected);
    }
}
