//! The security groups of machines, and who may talk to whom among them.

use crate::objects::rules::{self, ALL, Peer, Traffic, tcp, udp};
use crate::{FullSpec, tags};
use cloud::{Cloud, SecurityGroup, SecurityGroupRule};
use engine::Ref;
use node::config::{Networking, Role};
use node::{names, ports};

/// TCP ports of control planes that nodes may reach where the user brings the network: all but etcd's (2380 and 2381 peers,
/// 4001 and 4002 clients). kOps', for no one knows what such a network needs.
const CONTROL_PLANE_TCP: [(u16, u16); 3] = [(1, 2379), (2382, 4000), (4003, 65535)];

pub(super) fn build(full: &FullSpec) -> Vec<Cloud> {
    [Role::ControlPlane, Role::Node]
        .into_iter()
        .filter_map(|role| of_role(full, role))
        .collect()
}

/// The role's own group, if any of its instance groups uses it.
pub(super) fn of_role(full: &FullSpec, role: Role) -> Option<Cloud> {
    let description = match role {
        Role::ControlPlane => "Security group for masters",
        Role::Node => "Security group for nodes",
        Role::Bastion => "Security group for bastion",
    };
    let name = names::security_group(&full.name, role);
    uses_default(full, role).then(|| group(full, name, description))
}

/// A group of ours.
pub(super) fn group(full: &FullSpec, group_name: String, description: &str) -> Cloud {
    SecurityGroup {
        description: description.to_owned(),
        vpc_id: super::vpc(full),
        tags: tags(full, &group_name),
        group_name,
    }
    .into()
}

/// Every security group that machines of a role stand in: ours, and those that instance groups override it with.
pub(super) fn peers(full: &FullSpec, role: Role) -> Vec<Peer> {
    let of_user = full
        .groups
        .iter()
        .filter(|one| one.role == role)
        .filter_map(|one| one.security_group_override.clone());
    let mut peers: Vec<Peer> = super::sorted(of_user)
        .into_iter()
        .map(|id| Peer {
            name: format!("{id}-{}", role_in_names(role)),
            suffix: format!("-{id}"),
            group: Ref::Given(id),
        })
        .collect();
    if uses_default(full, role) {
        let name = names::security_group(&full.name, role);
        peers.push(Peer {
            suffix: String::new(),
            group: super::own::<SecurityGroup>(&name),
            name,
        });
    }
    peers
}

fn uses_default(full: &FullSpec, role: Role) -> bool {
    full.groups
        .iter()
        .any(|one| one.role == role && one.security_group_override.is_none())
}

fn role_in_names(role: Role) -> &'static str {
    match role {
        Role::ControlPlane => "ControlPlane",
        Role::Node => "Node",
        Role::Bastion => "Bastion",
    }
}

/// Rules between control planes and nodes, and from outside to them.
pub(super) fn rules(full: &FullSpec) -> Vec<SecurityGroupRule> {
    let control_planes = peers(full, Role::ControlPlane);
    let nodes = peers(full, Role::Node);
    let mut all: Vec<SecurityGroupRule> = Vec::new();
    for machine in control_planes.iter().chain(&nodes) {
        all.extend(rules::egress(machine));
    }
    for from in &control_planes {
        for to in control_planes.iter().chain(&nodes) {
            all.push(rules::from_group(from, ALL, to));
        }
    }
    for from in &nodes {
        all.extend(nodes.iter().map(|to| rules::from_group(from, ALL, to)));
        for to in &control_planes {
            let traffic = to_control_planes(full).into_iter();
            all.extend(traffic.map(|traffic| rules::from_group(from, traffic, to)));
        }
    }
    all.extend(ssh(full, control_planes.iter().chain(&nodes)));
    all.extend(api(full, &control_planes));
    all.extend(node_ports(full, &nodes));
    all
}

/// What nodes may reach of control planes. With flannel that is the API, the bootstrap endpoint, kubelets, ports of Services
/// and pods' traffic, which is wrapped: what is inside of it no security group sees. At a control plane's own address SSH, etcd and
/// whatever else listens there is not for nodes.
fn to_control_planes(full: &FullSpec) -> Vec<Traffic> {
    let Networking::Flannel(backend) = &full.pods.networking else {
        let ranges = CONTROL_PLANE_TCP.map(|(low, high)| tcp(low, high));
        return [udp(1, 65535)].into_iter().chain(ranges).collect();
    };
    let wrapped = match backend.as_str() {
        "udp" => ports::FLANNEL_UDP,
        _ => ports::FLANNEL_VXLAN,
    };
    let (first, last) = full.node_port_range;
    vec![
        tcp(ports::API, ports::API),
        tcp(ports::BOOTSTRAP, ports::BOOTSTRAP),
        // Monitoring that runs on nodes asks the kubelets of control planes too.
        tcp(ports::KUBELET, ports::KUBELET),
        tcp(first, last),
        udp(first, last),
        udp(wrapped, wrapped),
    ]
}

/// SSH from outside; where there are bastions, only through them.
fn ssh<'a>(full: &FullSpec, machines: impl Iterator<Item = &'a Peer>) -> Vec<SecurityGroupRule> {
    if full.groups.iter().any(|one| one.role == Role::Bastion) {
        return Vec::new();
    }
    let sources = &full.ssh_access;
    machines
        .flat_map(|to| {
            sources
                .iter()
                .map(|from| rules::from_outside(from, tcp(22, 22), to))
        })
        .collect()
}

/// The API at the control planes themselves, where no load balancer stands before them.
fn api(full: &FullSpec, control_planes: &[Peer]) -> Vec<SecurityGroupRule> {
    if full.api.load_balancer.is_some() {
        return Vec::new();
    }
    let sources = &full.api.access;
    control_planes
        .iter()
        .flat_map(|to| {
            sources
                .iter()
                .map(|from| rules::from_outside(from, tcp(ports::API, ports::API), to))
        })
        .collect()
}

fn node_ports(full: &FullSpec, nodes: &[Peer]) -> Vec<SecurityGroupRule> {
    let (first, last) = full.node_port_range;
    let mut all = Vec::new();
    for from in &full.node_port_access {
        for to in nodes {
            for (protocol, traffic) in [("tcp", tcp(first, last)), ("udp", udp(first, last))] {
                let suffix = &to.suffix;
                let name = format!("nodeport-{protocol}-external-to-node-{from}{suffix}");
                all.push(rules::rule(name, to, cloud::RuleSource::of(from), traffic));
            }
        }
    }
    all
}
