//! A Node of the API, as far as the health of a cluster rests on it.

use aws_cloud::fleet::Instance;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use serde::Serialize;

/// The cloud controller takes it away once it has seen the instance; until then almost nothing is scheduled there.
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

const ROLE_LABEL: &str = "node-role.kubernetes.io/";

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeFacts {
    /// Its name.
    pub name: String,
    /// The instance that its provider id names.
    pub instance: Option<String>,
    /// kubelet's version.
    pub version: String,
    /// `control-plane`, `node`: its role labels, sorted.
    pub roles: Vec<String>,
    /// Ready.
    pub ready: bool,
    /// Why it is not Ready.
    pub reason: Option<String>,
    /// The cloud controller has not seen it yet.
    pub uninitialized: bool,
    /// Cordoned.
    pub unschedulable: bool,
    #[serde(skip)]
    addresses: Vec<String>,
}

impl NodeFacts {
    /// What a Node says.
    pub fn of(node: &Node) -> Self {
        let spec = node.spec.as_ref();
        let status = node.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_deref());
        let is_ready = |condition: &&NodeCondition| condition.type_ == "Ready";
        let ready = conditions.unwrap_or_default().iter().find(is_ready);
        let taints = spec.and_then(|spec| spec.taints.as_deref());
        let provider = spec.and_then(|spec| spec.provider_id.as_deref());
        let addresses = status.and_then(|status| status.addresses.as_deref());
        let addresses = addresses.unwrap_or_default().iter();
        Self {
            name: node.metadata.name.clone().unwrap_or_default(),
            instance: provider.and_then(instance_of).map(ToOwned::to_owned),
            version: status
                .and_then(|status| status.node_info.as_ref())
                .map(|info| info.kubelet_version.clone())
                .unwrap_or_default(),
            roles: roles(node),
            ready: ready.is_some_and(|condition| condition.status == "True"),
            reason: reason(ready),
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

    /// Whether it runs on that instance. Before the cloud controller has seen it, its name or address says so.
    pub fn is_of(&self, instance: &Instance) -> bool {
        if let Some(id) = &self.instance {
            return *id == instance.id;
        }
        let named = |name: &Option<String>| name.as_deref() == Some(&self.name);
        self.name == instance.id
            || named(&instance.private_dns_name)
            || instance
                .private_ip
                .as_ref()
                .is_some_and(|address| self.addresses.contains(address))
    }

    /// A control plane's.
    pub fn is_control_plane(&self) -> bool {
        self.roles.iter().any(|role| role == "control-plane")
    }
}

/// `aws:///eu-west-1a/i-0123` names an instance.
fn instance_of(provider_id: &str) -> Option<&str> {
    let last = provider_id.rsplit('/').next()?;
    last.starts_with("i-").then_some(last)
}

fn roles(node: &Node) -> Vec<String> {
    let labels = node.metadata.labels.iter().flatten();
    let roles = labels.filter_map(|(key, _)| key.strip_prefix(ROLE_LABEL));
    let mut roles: Vec<String> = roles.map(ToOwned::to_owned).collect();
    roles.sort();
    roles
}

fn reason(ready: Option<&NodeCondition>) -> Option<String> {
    let Some(ready) = ready else {
        return Some("kubelet has not said anything yet".to_owned());
    };
    if ready.status == "True" {
        return None;
    }
    let said = [ready.reason.as_deref(), ready.message.as_deref()];
    let said: Vec<&str> = said
        .into_iter()
        .flatten()
        .filter(|text| !text.is_empty())
        .collect();
    Some(said.join(": "))
}
