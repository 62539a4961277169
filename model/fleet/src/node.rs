//! A Node of the API, as far as the health of a cluster depends on it, and the instance that it runs on.

use crate::Instance;
use k8s_openapi::api::core::v1 as k8s;
use serde::Serialize;

/// The taint that the cloud controller manager removes once it has seen the instance. Until then almost nothing is
/// scheduled on the node.
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

const ROLE_LABEL: &str = "node-role.kubernetes.io/";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Its name: the instance id.
    pub name: String,
    /// The instance id in its provider id, once the cloud controller manager has set it.
    pub instance: Option<String>,
    /// kubelet's version, `v1.36.3`.
    pub version: String,
    /// Its role labels, sorted: `control-plane`, `node`.
    pub roles: Vec<String>,
    /// True if its condition Ready is True.
    pub ready: bool,
    /// Reason and message of that condition if it is not True.
    pub reason: Option<String>,
    /// True if the cloud controller manager has not initialized it yet.
    pub uninitialized: bool,
    /// True if it is cordoned.
    pub unschedulable: bool,
    #[serde(skip)]
    pub addresses: Vec<String>,
}

impl Node {
    /// Reads a Node of the API.
    pub fn read(node: &k8s::Node) -> Self {
        let spec = node.spec.as_ref();
        let status = node.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_deref());
        let is_ready = |condition: &&k8s::NodeCondition| condition.type_ == "Ready";
        let ready = conditions.unwrap_or_default().iter().find(is_ready);
        let taints = spec.and_then(|spec| spec.taints.as_deref());
        let provider = spec.and_then(|spec| spec.provider_id.as_deref());
        let addresses = status.and_then(|status| status.addresses.as_deref());
        let addresses = addresses.unwrap_or_default().iter();
        Self {
            name: node.metadata.name.clone().unwrap_or_default(),
            instance: provider.and_then(instance_id).map(ToOwned::to_owned),
            version: status
                .and_then(|status| status.node_info.as_ref())
                .map(|info| info.kubelet_version.clone())
                .unwrap_or_default(),
            roles: role_labels(node),
            ready: ready.is_some_and(|condition| condition.status == "True"),
            reason: not_ready_reason(ready),
            uninitialized: taints
                .unwrap_or_default()
                .iter()
                .any(|taint| taint.key == UNINITIALIZED),
            unschedulable: spec.and_then(|spec| spec.unschedulable) == Some(true),
            addresses: addresses
                .filter(|address| address.type_ == "InternalIP")
                .map(|address| address.address.clone())
                .collect(),
        }
    }

    /// True if it runs on that instance. Before the cloud controller manager has set the provider id, name and address
    /// decide.
    pub fn is_on(&self, instance: &Instance) -> bool {
        if let Some(id) = &self.instance {
            return *id == instance.id;
        }
        let has_name = |name: &Option<String>| name.as_deref() == Some(&self.name);
        self.name == instance.id
            || has_name(&instance.private_dns_name)
            || [&instance.private_ip, &instance.ipv6_address]
                .into_iter()
                .flatten()
                .any(|address| self.addresses.contains(address))
    }

    /// True if it is a control plane.
    pub fn is_control_plane(&self) -> bool {
        self.roles.iter().any(|role| role == "control-plane")
    }
}

/// The instance id at the end of a provider id such as `aws:///eu-west-1a/i-0123`.
fn instance_id(provider_id: &str) -> Option<&str> {
    let last = provider_id.rsplit('/').next()?;
    last.starts_with("i-").then_some(last)
}

/// The roles in the labels `node-role.kubernetes.io/ROLE`, sorted.
fn role_labels(node: &k8s::Node) -> Vec<String> {
    let labels = node.metadata.labels.iter().flatten();
    let roles = labels.filter_map(|(key, _)| key.strip_prefix(ROLE_LABEL));
    let mut roles: Vec<String> = roles.map(ToOwned::to_owned).collect();
    roles.sort();
    roles
}

/// Reason and message of the condition Ready; `None` if it is True.
fn not_ready_reason(ready: Option<&k8s::NodeCondition>) -> Option<String> {
    let Some(ready) = ready else {
        return Some("kubelet has not reported its status yet".to_owned());
    };
    if ready.status == "True" {
        return None;
    }
    let texts = [ready.reason.as_deref(), ready.message.as_deref()];
    let texts: Vec<&str> = texts
        .into_iter()
        .flatten()
        .filter(|text| !text.is_empty())
        .collect();
    Some(texts.join(": "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(node: Value) -> Node {
        Node::read(&serde_json::from_value(node).unwrap())
    }

    #[test]
    fn a_node_says_whether_it_is_ready_and_why_not() {
        let node = read(json!({
            "metadata": {"name": "i-1", "labels": {
                "node-role.kubernetes.io/node": "", "node-role.kubernetes.io/control-plane": "", "other": ""
            }},
            "spec": {
                "providerID": "aws:///eu-west-1a/i-1", "unschedulable": true,
                "taints": [{"key": UNINITIALIZED, "effect": "NoSchedule"}],
            },
            "status": {"conditions": [
                {"type": "MemoryPressure", "status": "False"},
                {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "no CNI"},
            ]},
        }));
        assert_eq!(node.roles, ["control-plane", "node"]);
        assert!(node.is_control_plane() && node.uninitialized && node.unschedulable);
        assert!(!node.ready);
        assert_eq!(node.reason.as_deref(), Some("KubeletNotReady: no CNI"));
        let new = read(json!({"metadata": {"name": "i-1"}}));
        assert!(!new.ready && new.reason.is_some());
        let ready =
            json!({"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]});
        let ready = read(json!({"metadata": {"name": "i-1"}, "status": ready}));
        assert!(ready.ready && ready.reason.is_none());
    }

    #[test]
    fn a_node_is_on_the_instance_of_its_provider_id_or_before_that_of_its_name_or_address() {
        let instance = |id: &str| Instance {
            id: id.to_owned(),
            private_dns_name: Some("ip-10-0-0-1.ec2.internal".to_owned()),
            private_ip: Some("10.0.0.1".to_owned()),
            ..Instance::default()
        };
        let named = |name: &str, provider: Option<&str>| Node {
            name: name.to_owned(),
            instance: provider.map(ToOwned::to_owned),
            ..Node::default()
        };
        let of_address = Node {
            addresses: vec!["10.0.0.1".to_owned()],
            ..Node::default()
        };
        for (node, expected) in [
            (named("other", Some("i-1")), true),
            (named("i-1", Some("i-2")), false),
            (named("i-1", None), true),
            (named("ip-10-0-0-1.ec2.internal", None), true),
            (of_address, true),
            (named("other", None), false),
        ] {
            assert_eq!(node.is_on(&instance("i-1")), expected, "{node:?}");
        }
    }
}
