//! calico, the network between pods of different nodes, which enforces policies and can replace kube-proxy. Its agents are replaced one
//! by one on running nodes, as in kOps; a digest of their configuration restarts them when it changes.

mod context;

use super::crds::{compressed_crds, decompress};
use super::manifest::AddonName;
use super::permissions::change_own;
use super::{Addon, Error};
use crate::FullSpec;
use crate::iam::Statement;
use context::{Access, Manifest};
use serde::{Deserialize, Serialize};

/// Settings of calico: `spec.networking.calico`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calico {
    /// Image of the agent on each node.
    pub image: String,
    /// Image of what installs the CNI plugin.
    pub plugin_image: String,
    pub controllers_image: String,
    pub typha_image: String,
    pub encapsulation: Encapsulation,
    /// The same of a pool of IPv6 addresses, which a user may make.
    pub ipv6_vxlan: Encapsulated,
    /// Size of packets between pods; 0: the agent finds it out.
    pub mtu: i32,
    pub allow_ip_forwarding: bool,
    /// The range of the first pool of addresses; in IPv6 clusters there is none.
    pub pool: String,
    pub ipv4_detection: String,
    pub ipv6_detection: String,
    /// Further settings of the agent by their names, which are variables of its environment, in their order.
    pub settings: Vec<(String, String)>,
    pub source_destination_check: SourceDestinationCheck,
    /// True: programs in the kernel forward packets, and kube-proxy may be absent.
    pub bpf: bool,
    pub wireguard: bool,
    pub cpu_request: String,
    /// The port of the agent's metrics; `None`: it serves none.
    pub metrics_port: Option<i32>,
    pub typha: Option<Typha>,
}

/// How packets reach other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encapsulation {
    /// IP in IP, with routes from BGP.
    Ipip(Encapsulated),
    Vxlan(Encapsulated),
    /// As they are: pods have addresses of their instances, in IPv6 clusters.
    None,
}

/// Which packets are encapsulated, in the words of calico.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encapsulated {
    /// Those to nodes of other subnets.
    CrossSubnet,
    Always,
    Never,
}

/// What an agent does to EC2's check of the addresses of packets, in the words of calico.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SourceDestinationCheck {
    Disable,
    Enable,
    DoNothing,
}

/// Pods between agents and the API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Typha {
    pub replicas: i32,
    /// True: it serves metrics.
    pub metrics: bool,
    pub metrics_port: i32,
}

impl Encapsulated {
    /// As calico writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CrossSubnet => "CrossSubnet",
            Self::Always => "Always",
            Self::Never => "Never",
        }
    }
}

impl SourceDestinationCheck {
    /// As calico writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disable => "Disable",
            Self::Enable => "Enable",
            Self::DoNothing => "DoNothing",
        }
    }
}

pub(super) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let Some(calico) = &full.addons.calico else {
        return Ok(None);
    };
    let named = AddonName {
        name: "networking.projectcalico.org",
        id: "k8s-1.25",
        selector: ("role.kubernetes.io/networking", "1"),
    };
    let rendered = [
        decompress(named, compressed_crds!("calico"))?,
        named.render_template(&Access::new(full))?,
        named.render_template(&Manifest::new(full, calico))?,
    ];
    named.make_addon(full, &rendered).map(Some)
}

/// What agents call in AWS, on every instance: they turn the check of addresses of their own instance off or on. As in kOps, but for
/// network interfaces of the cluster only; without permissions for security groups and instances they change nothing else of these.
pub(crate) fn permissions_of_agents(full: &FullSpec) -> Vec<Statement> {
    let calico = full.addons.calico.as_ref();
    let check = calico.map(|calico| calico.source_destination_check);
    if check.is_none_or(|check| check == SourceDestinationCheck::DoNothing) {
        return Vec::new();
    }
    let partition = &full.placement.partition;
    vec![
        Statement::allow(["ec2:DescribeInstances"]).on_all(),
        change_own(full, ["ec2:ModifyNetworkInterfaceAttribute"])
            .on_each([format!("arn:{partition}:ec2:*:*:network-interface/*")]),
    ]
}
