//! Bastions: their security groups, and the network load balancer in front of them.

use crate::objects::load_balancer::{ip_address_type, scheme_name, target_group};
use crate::objects::rules::{self, PATH_MTU, Peer, tcp_ports};
use crate::objects::security_groups;
use crate::{FullSpec, Subnet, SubnetType, cluster_tags};
use cloud::{
    Cloud, Lb, LbListener, LbTargetGroup, SecurityGroup, SecurityGroupRule, SubnetMapping,
};
use engine::Ref;
use node::config::Role;
use node::names;
use std::collections::BTreeMap;

pub(super) const SSH: u16 = 22;

pub(super) fn has_bastions(full: &FullSpec) -> bool {
    full.groups.iter().any(|group| group.role == Role::Bastion)
}

pub(super) fn build_bastion(full: &FullSpec) -> Vec<Cloud> {
    if !has_bastions(full) {
        return Vec::new();
    }
    let logical_name = names::bastion_load_balancer(&full.name);
    let group = target_group(full, "bastion", SSH);
    let listener = LbListener {
        name: format!("{logical_name}-{SSH}"),
        load_balancer_arn: super::own_ref::<Lb>(&logical_name),
        port: SSH.into(),
        protocol: "TCP".into(),
        certificate_arn: None,
        ssl_policy: None,
        target_group_arn: super::own_ref::<LbTargetGroup>(&group.name),
    };
    let subnets = load_balancer_subnets(full);
    let mapping = subnets.iter().map(|place| SubnetMapping {
        subnet_id: super::subnet_ref(full, place),
        allocation_id: None,
        private_ipv4_address: None,
    });
    let more = full.bastion.additional_security_groups.iter();
    let balancer = Lb {
        name: names::load_balancer(&logical_name),
        lb_type: "network".into(),
        scheme: scheme_name(full.bastion.internal).into(),
        ip_address_type: ip_address_type(full, Role::Bastion, &subnets).into(),
        security_groups: super::sort_unique(
            more.cloned()
                .map(Ref::Given)
                .chain([load_balancer_peer(full).group]),
        ),
        subnet_mappings: super::sort_unique(mapping),
        cross_zone_enabled: false,
        access_logs: None,
        tags: cluster_tags(full, &logical_name),
        logical_name,
    };
    let name = names::bastion_security_group(&full.name);
    let own_group =
        security_groups::own_security_group(full, name, "Security group for bastion ELB");
    let of_instances = security_groups::role_security_group(full, Role::Bastion);
    let all = [own_group, group.into(), listener.into(), balancer.into()];
    all.into_iter().chain(of_instances).collect()
}

/// The load balancer's name in the hosted zone, if there are bastions and the spec sets one.
pub(super) fn public_name(full: &FullSpec) -> Option<&String> {
    full.bastion
        .public_name
        .as_ref()
        .filter(|_| has_bastions(full))
}

/// The names of the target groups that bastions join.
pub(super) fn target_groups(full: &FullSpec) -> Vec<String> {
    vec![names::target_group(&full.name, "bastion")]
}

/// The subnets of the load balancer: one with IPv4 in each zone, private ones for an internal load balancer. Utility subnets are
/// preferred, then those that bastions use.
pub(super) fn load_balancer_subnets(full: &FullSpec) -> Vec<&Subnet> {
    let used = |subnet: &Subnet| {
        let bastions = full.groups.iter().filter(|one| one.role == Role::Bastion);
        bastions
            .flat_map(|one| &one.subnets)
            .any(|name| *name == subnet.name)
    };
    let worth = |subnet: &Subnet| (subnet.kind == SubnetType::Utility, used(subnet));
    let mut best: BTreeMap<&str, &Subnet> = BTreeMap::new();
    for subnet in &full.network.subnets {
        if subnet.kind.is_private() != full.bastion.internal || subnet.cidr.is_none() {
            continue;
        }
        let best_of_zone = best.entry(&subnet.zone).or_insert(subnet);
        if worth(subnet) > worth(best_of_zone) {
            *best_of_zone = subnet;
        }
    }
    best.into_values().collect()
}

pub(super) fn load_balancer_peer(full: &FullSpec) -> Peer {
    let name = names::bastion_security_group(&full.name);
    Peer {
        suffix: String::new(),
        group: super::own_ref::<SecurityGroup>(&name),
        name,
    }
}

/// SSH goes from outside to the load balancer, from there to bastions, and from bastions to all instances.
pub(super) fn bastion_rules(full: &FullSpec) -> Vec<SecurityGroupRule> {
    if !has_bastions(full) {
        return Vec::new();
    }
    let front = load_balancer_peer(full);
    let ssh = tcp_ports(SSH, SSH);
    let mut all = rules::egress_rules(&front);
    // The load balancer's health checks come from its own subnets.
    let checks = load_balancer_subnets(full)
        .into_iter()
        .filter_map(|place| place.cidr)
        .map(|range| range.to_string());
    for from in full.ssh_access.iter().cloned().chain(checks) {
        all.push(rules::range_rule(&from, ssh, &front));
        all.extend(rules::path_mtu_rules("ssh-nlb", &from, &front));
    }
    let instances =
        [Role::ControlPlane, Role::Node].map(|role| security_groups::role_peers(full, role));
    for bastion in security_groups::role_peers(full, Role::Bastion) {
        all.extend(rules::egress_rules(&bastion));
        all.push(rules::group_rule(&front, ssh, &bastion));
        all.push(rules::group_rule(&front, PATH_MTU, &bastion));
        all.push(rules::group_rule(&bastion, PATH_MTU, &front));
        let to = instances.iter().flatten();
        all.extend(to.map(|instance| rules::group_rule(&bastion, ssh, instance)));
    }
    all
}
