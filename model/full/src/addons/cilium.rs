//! cilium, the network between pods of different nodes, which can replace kube-proxy. Its agents compile their programs on the node. They
//! are replaced with their instance only (`OnDelete`), as in kOps: a NodeConfig has the digest of what is installed.

pub(super) mod gateways;
pub(crate) mod hubble;
pub(crate) mod ipsec;
mod settings;

use super::control_planes::controller_replicas;
use super::manifest::AddonName;
use super::permissions::{change_own, create_own, tag_own};
use super::{Addon, Error};
use crate::iam::Statement;
use crate::{AddonValues, FullSpec};
use hubble::Hubble;
use node::digest::sha256_hex;
use node::{names, ports};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use settings::SETTINGS;
use std::collections::BTreeMap;
use templates::Template;

const NAME: &str = "networking.cilium.io";

/// What the agents' account may write: in every cluster, where pods have addresses of their Node's range, and where they have those of
/// network interfaces.
const POLICIES: &str = include_str!("cilium/policies.yaml");
const RANGES: &str = include_str!("cilium/ranges.yaml");
const INTERFACES: &str = include_str!("cilium/interfaces.yaml");

/// Settings of cilium: `spec.networking.cilium`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cilium {
    pub image: String,
    pub operator_image: String,
    /// At which nodes reach the agents of control planes, over TCP and UDP.
    pub tcp_ports: Vec<u16>,
    pub udp_ports: Vec<u16>,
    /// Pods have addresses of network interfaces (ENIs) that the operator attaches to instances.
    #[serde(default)]
    pub eni: bool,
    /// Packets between pods of different nodes are IPsec's.
    #[serde(default)]
    pub ipsec: bool,
    /// Entries of its ConfigMap.
    pub settings: BTreeMap<String, String>,
    pub cpu_request: String,
    pub memory_request: String,
    /// What shows flows between pods.
    #[serde(default)]
    pub hubble: Option<Hubble>,
    /// Its Ingress controller.
    #[serde(default)]
    pub ingress: Option<CiliumIngress>,
    /// Its implementation of the Gateway API.
    #[serde(default)]
    pub gateways: bool,
    /// Annotations of the agents' pods.
    pub agent_annotations: BTreeMap<String, String>,
    /// Annotations of the operator's pods.
    pub operator_annotations: BTreeMap<String, String>,
}

/// cilium's Ingress controller: `spec.networking.cilium.ingress`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CiliumIngress {
    /// The Service of Ingresses that share a load balancer; `None`: there is none.
    pub shared_service: Option<String>,
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
    /// Of the operator, which every update replaces.
    api_host: String,
    agent_api: AgentApi,
    /// The address at which the agent and the operator answer health checks.
    loopback: String,
    replicas: i32,
    hubble: bool,
    ingress: bool,
    shared_service: Option<String>,
    gateways: bool,
    /// The operator makes Services, of Ingresses and Gateways.
    makes_services: bool,
    /// Of the operator's calls to EC2; it makes some only for interfaces.
    region: Option<String>,
}

/// Where an agent reaches the API.
#[derive(Serialize)]
struct AgentApi {
    host: String,
    port: u16,
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
    if cilium.eni {
        settings.extend(interface_tags(full)?);
    }
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
        agent_api: agent_api(full),
        loopback: if full.is_ipv6() { "::1" } else { "127.0.0.1" }.to_owned(),
        replicas: controller_replicas(full),
        hubble: cilium.hubble.is_some(),
        ingress: cilium.ingress.is_some(),
        shared_service: cilium.ingress.clone().and_then(|one| one.shared_service),
        gateways: cilium.gateways,
        makes_services: cilium.ingress.is_some() || cilium.gateways,
        region: cilium.eni.then(|| full.placement.region.clone()),
    };
    let manifest = named.render_template(&manifest)?;
    let addresses = if cilium.eni { INTERFACES } else { RANGES };
    let rendered = [POLICIES.to_owned(), addresses.to_owned(), manifest];
    named.make_addon(full, &rendered).map(Some)
}

/// By the proxy of the node, if nodes have one: an agent is replaced with its instance, so that none looks for a proxy that its instance
/// lacks.
fn agent_api(full: &FullSpec) -> AgentApi {
    let (host, port) = if full.api.node_proxy {
        ("127.0.0.1", ports::API_PROXY)
    } else {
        (full.dns.api_internal_name.as_str(), ports::API)
    };
    AgentApi {
        host: host.to_owned(),
        port,
    }
}

/// The tags of interfaces, and those by which the operator finds what it has made and not attached: in this cluster only.
fn interface_tags(full: &FullSpec) -> Result<[(String, String); 2], Error> {
    let mut tags = full.cloud_labels.clone();
    tags.extend([
        (names::CLUSTER_TAG.to_owned(), full.name.clone()),
        (names::ownership_tag(&full.name), "owned".to_owned()),
    ]);
    let made = json!({"io.cilium/cilium-managed": "true", "io.cilium/cluster-name": full.name});
    Ok([
        ("eni-tags".to_owned(), serde_json::to_string(&tags)?),
        ("eni-gc-tags".to_owned(), made.to_string()),
    ])
}

/// Network interfaces of this cluster and their addresses; only what is made with the cluster's tag.
pub(super) fn permissions(full: &FullSpec) -> Vec<Statement> {
    let cilium = full.addons.cilium.as_ref();
    if !cilium.is_some_and(|cilium| cilium.eni) {
        return Vec::new();
    }
    let partition = &full.placement.partition;
    let all_of = |kind: &str| format!("arn:{partition}:ec2:*:*:{kind}/*");
    let [tag_new, _] = tag_own(full, &["network-interface"], &["CreateNetworkInterface"]);
    vec![
        Statement::allow([
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeInstances",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeRouteTables",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSubnets",
            "ec2:DescribeVpcs",
        ])
        .on_all(),
        create_own(full, ["ec2:CreateNetworkInterface"]).on_each([all_of("network-interface")]),
        // The request's tags do not apply to what the interface is made in.
        Statement::allow(["ec2:CreateNetworkInterface"])
            .on_each([all_of("security-group"), all_of("subnet")]),
        tag_new,
        change_own(
            full,
            [
                "ec2:AssignPrivateIpAddresses",
                "ec2:AttachNetworkInterface",
                "ec2:DeleteNetworkInterface",
                "ec2:ModifyNetworkInterfaceAttribute",
                "ec2:UnassignPrivateIpAddresses",
            ],
        )
        .on_all(),
    ]
}
