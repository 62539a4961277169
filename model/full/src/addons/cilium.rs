//! cilium, the network between pods of different nodes, which can replace kube-proxy. Its agents compile their programs on the node. They
//! are replaced with their instance only (`OnDelete`), as in kOps: a NodeConfig has the digest of what is installed.

pub(crate) mod hubble;
mod settings;

use super::control_planes::controller_replicas;
use super::manifest::AddonName;
use super::{Addon, Error};
use crate::{AddonValues, FullSpec};
use hubble::Hubble;
use node::digest::sha256_hex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use settings::SETTINGS;
use std::collections::BTreeMap;
use templates::Template;

const NAME: &str = "networking.cilium.io";

/// What the agents' account may write.
const POLICIES: &str = include_str!("cilium/policies.yaml");

/// Settings of cilium: `spec.networking.cilium`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cilium {
    pub image: String,
    pub operator_image: String,
    /// At which nodes reach the agents of control planes, over TCP and UDP.
    pub tcp_ports: Vec<u16>,
    pub udp_ports: Vec<u16>,
    /// Entries of its ConfigMap.
    pub settings: BTreeMap<String, String>,
    pub cpu_request: String,
    pub memory_request: String,
    /// What shows flows between pods.
    #[serde(default)]
    pub hubble: Option<Hubble>,
    /// Annotations of the agents' pods.
    pub agent_annotations: BTreeMap<String, String>,
    /// Annotations of the operator's pods.
    pub operator_annotations: BTreeMap<String, String>,
}

impl Cilium {
    /// Changes with everything that an agent takes over only when its instance is replaced, and with what else the manifest has.
    pub fn digest(&self, values: &[AddonValues]) -> String {
        let mut values = values.to_vec();
        values.retain(|values| values.addon == NAME);
        sha256_hex(json!([self, values, SETTINGS, Manifest::SOURCE]).to_string())
    }
}

#[derive(Serialize)]
struct Manifest {
    image: String,
    operator_image: String,
    settings: BTreeMap<String, String>,
    resources: Value,
    agent_annotations: BTreeMap<String, String>,
    operator_annotations: Option<BTreeMap<String, String>>,
    api_host: String,
    /// The address at which the agent and the operator answer health checks.
    loopback: String,
    replicas: i32,
    hubble: bool,
}

impl Template for Manifest {
    const NAME: &'static str = "cilium/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("cilium/manifest.yaml.hbs");
}

pub(super) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let Some(cilium) = &full.addons.cilium else {
        return Ok(None);
    };
    let named = AddonName {
        name: NAME,
        id: "k8s-1.16",
        selector: ("role.kubernetes.io/networking", "1"),
    };
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let mut settings: BTreeMap<String, String> = SETTINGS.iter().map(owned).collect();
    let (first, last) = full.node_port_range;
    settings.insert("node-port-range".to_owned(), format!("{first},{last}"));
    settings.extend(cilium.settings.clone());
    let mut agent_annotations = cilium.agent_annotations.clone();
    let container = "kubectl.kubernetes.io/default-container";
    agent_annotations.insert(container.to_owned(), "cilium-agent".to_owned());
    let manifest = Manifest {
        image: cilium.image.clone(),
        operator_image: cilium.operator_image.clone(),
        settings,
        resources: json!({"requests": {"cpu": cilium.cpu_request, "memory": cilium.memory_request}}),
        agent_annotations,
        operator_annotations: Some(cilium.operator_annotations.clone())
            .filter(|annotations| !annotations.is_empty()),
        api_host: full.dns.api_internal_name.clone(),
        loopback: if full.is_ipv6() { "::1" } else { "127.0.0.1" }.to_owned(),
        replicas: controller_replicas(full),
        hubble: cilium.hubble.is_some(),
    };
    let manifest = named.render_template(&manifest)?;
    named
        .make_addon(full, &[POLICIES.to_owned(), manifest])
        .map(Some)
}
