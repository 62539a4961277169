//! What is known of each machine of a cluster: from AWS, from the API's nodes, and of those that have not joined from
//! their boot report in the store or their console; of control planes also from what protokube leaves in the store.

mod gather;
mod next;
mod node;
mod start;
mod waiting;

pub use gather::{Gathered, Places, gather};
pub use node::NodeFacts;
pub use start::{Source, Start};
pub use waiting::{Waiting, faults};

use aws_cloud::fleet::Instance;
use serde::Serialize;
use spec::api::{InstanceGroup, InstanceGroupRole};

/// What the machines of a group do, as tables say it.
pub fn role_name(role: Option<InstanceGroupRole>) -> &'static str {
    match role {
        Some(InstanceGroupRole::ControlPlane) => "ControlPlane",
        Some(InstanceGroupRole::Node) => "Node",
        Some(InstanceGroupRole::Bastion) => "Bastion",
        Some(InstanceGroupRole::ApiServer) => "APIServer",
        None => "",
    }
}

/// Whether a machine is a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Membership {
    /// Its node is Ready.
    Ready,
    /// Its node is not Ready.
    NotReady,
    /// It has no node.
    NotJoined,
    /// The API could not be asked.
    Unknown,
    /// It is not to be a node: a bastion, a member of a warm pool, one that goes.
    Never,
}

impl Membership {
    /// In a word, for tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::NotReady => "NotReady",
            Self::NotJoined => "not joined",
            Self::Unknown => "unknown",
            Self::Never => "",
        }
    }
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// `i-...`.
    pub id: String,
    /// Its instance group.
    pub group: String,
    /// Its group's role; empty if the spec has no such group.
    pub role: &'static str,
    /// Availability zone.
    pub zone: String,
    /// `t3.medium`.
    pub machine_type: String,
    /// EC2's.
    pub state: String,
    /// Auto Scaling's.
    pub lifecycle: Option<String>,
    /// When it was launched, in seconds since 1970.
    pub launched: Option<i64>,
    /// Primary private address.
    pub private_ip: Option<String>,
    /// Public address, if it has one.
    pub public_ip: Option<String>,
    /// The version of the launch template it came from.
    pub template_version: Option<String>,
    /// Whether that is what its group launches now.
    pub up_to_date: Option<bool>,
    /// Whether it is a node.
    pub membership: Membership,
    /// Its node, if it has joined.
    pub node: Option<NodeFacts>,
    /// How far its start came, where it has not joined or that is not known.
    pub start: Option<Start>,
    /// What protokube of a control plane waits for or refuses, joined or not, the causes first.
    pub waits: Vec<Waiting>,
}

impl Machine {
    /// Runs etcd and the API.
    pub fn is_control_plane(&self) -> bool {
        self.role == role_name(Some(InstanceGroupRole::ControlPlane))
    }

    fn of(instance: &Instance, groups: &[InstanceGroup], nodes: Option<&[NodeFacts]>) -> Self {
        let group = instance.instance_group.clone().unwrap_or_default();
        let spec = groups.iter().find(|one| one.name() == group);
        let role = spec.and_then(|group| group.spec.role);
        let node = nodes.and_then(|nodes| nodes.iter().find(|node| node.is_of(instance)));
        let never = role == Some(InstanceGroupRole::Bastion) || waits_or_goes(instance);
        let membership = match (nodes, node) {
            (_, Some(node)) if node.ready => Membership::Ready,
            (_, Some(_)) => Membership::NotReady,
            _ if never => Membership::Never,
            (None, _) => Membership::Unknown,
            (Some(_), None) => Membership::NotJoined,
        };
        Self {
            id: instance.id.clone(),
            group,
            role: role_name(role),
            zone: instance.zone.clone(),
            machine_type: instance.machine_type.clone(),
            state: instance.state.clone(),
            lifecycle: instance.lifecycle.clone(),
            launched: instance.launched,
            private_ip: instance.private_ip.clone(),
            public_ip: instance.public_ip.clone(),
            template_version: instance.template.as_ref().map(|of| of.version.clone()),
            up_to_date: instance.up_to_date,
            membership,
            node: node.cloned(),
            start: None,
            waits: Vec::new(),
        }
    }
}

/// Waits in a warm pool, or is on its way out.
fn waits_or_goes(instance: &Instance) -> bool {
    let lifecycle = instance.lifecycle.as_deref().unwrap_or_default();
    lifecycle.starts_with("Warmed")
        || lifecycle.starts_with("Terminat")
        || instance.state == "shutting-down"
}
