//! The security groups of instances, and the rules between them.

use crate::objects::ports_between;
use crate::objects::rules::{self, ALL, Peer, tcp_ports, udp_ports};
use crate::{FullSpec, cluster_tags};
use cloud::{Cloud, SecurityGroup, SecurityGroupRule};
use engine::Ref;
use node::config::Role;
use node::{names, ports};

pub(super) fn build_security_groups(full: &FullSpec) -> Vec<Cloud> {
    [Role::ControlPlane, Role::Node]
        .into_iter()
        .filter_map(|role| role_security_group(full, role))
        .collect()
}

/// The role's security group, if any of its instance groups uses it.
pub(super) fn role_security_group(full: &FullSpec, role: Role) -> Option<Cloud> {
    let description = match role {
        Role::ControlPlane => "Security group for masters",
        Role::Node => "Security group for nodes",
        Role::Bastion => "Security group for bastion",
    };
    let name = names::security_group(&full.name, role);
    uses_default(full, role).then(|| own_security_group(full, name, description))
}

/// A security group of the cluster.
pub(super) fn own_security_group(full: &FullSpec, group_name: String, description: &str) -> Cloud {
    SecurityGroup {
        description: description.to_owned(),
        vpc_id: super::vpc_ref(full),
        tags: cluster_tags(full, &group_name),
        group_name,
    }
    .into()
}

/// Every security group of instances of a role: the cluster's, and the overrides of instance groups.
pub(super) fn role_peers(full: &FullSpec, role: Role) -> Vec<Peer> {
    let of_user = full
        .groups
        .iter()
        .filter(|one| one.role == role)
        .filter_map(|one| one.security_group_override.clone());
    let mut peers: Vec<Peer> = super::sort_unique(of_user)
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
            group: super::own_ref::<SecurityGroup>(&name),
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
pub(super) fn instance_rules(full: &FullSpec) -> Vec<SecurityGroupRule> {
    let control_planes = role_peers(full, Role::ControlPlane);
    let nodes = role_peers(full, Role::Node);
    let mut all: Vec<SecurityGroupRule> = Vec::new();
    for instance in control_planes.iter().chain(&nodes) {
        all.extend(rules::egress_rules(instance));
    }
    for from in &control_planes {
        for to in control_planes.iter().chain(&nodes) {
            all.push(rules::group_rule(from, ALL, to));
        }
    }
    for from in &nodes {
        all.extend(nodes.iter().map(|to| rules::group_rule(from, ALL, to)));
        for to in &control_planes {
            let traffic = ports_between::node_to_control_plane_traffic(full).into_iter();
            all.extend(traffic.map(|traffic| rules::group_rule(from, traffic, to)));
        }
    }
    all.extend(ssh_rules(full, control_planes.iter().chain(&nodes)));
    all.extend(api_rules(full, &control_planes));
    all.extend(node_port_rules(full, &nodes));
    all
}

/// SSH from outside; none if there are bastions, since SSH then goes only through them.
fn ssh_rules<'a>(
    full: &FullSpec,
    instances: impl Iterator<Item = &'a Peer>,
) -> Vec<SecurityGroupRule> {
    if full.groups.iter().any(|one| one.role == Role::Bastion) {
        return Vec::new();
    }
    let sources = &full.ssh_access;
    instances
        .flat_map(|to| {
            sources
                .iter()
                .map(|from| rules::range_rule(from, tcp_ports(22, 22), to))
        })
        .collect()
}

/// Access to the API at the control planes, if there is no load balancer.
fn api_rules(full: &FullSpec, control_planes: &[Peer]) -> Vec<SecurityGroupRule> {
    if full.api.load_balancer.is_some() {
        return Vec::new();
    }
    let sources = &full.api.access;
    control_planes
        .iter()
        .flat_map(|to| {
            sources
                .iter()
                .map(|from| rules::range_rule(from, tcp_ports(ports::API, ports::API), to))
        })
        .collect()
}

fn node_port_rules(full: &FullSpec, nodes: &[Peer]) -> Vec<SecurityGroupRule> {
    let (first, last) = full.node_port_range;
    let mut all = Vec::new();
    for from in &full.node_port_access {
        for to in nodes {
            for (protocol, traffic) in [
                ("tcp", tcp_ports(first, last)),
                ("udp", udp_ports(first, last)),
            ] {
                let suffix = &to.suffix;
                let name = format!("nodeport-{protocol}-external-to-node-{from}{suffix}");
                all.push(rules::ingress_rule(
                    name,
                    to,
                    cloud::RuleSource::parse_peer(from),
                    traffic,
                ));
            }
        }
    }
    all
}
