//! Bastions: their security group, and the network load balancer before them.

use crate::objects::load_balancer::{scheme, target_group};
use crate::objects::rules::{self, PATH_MTU, Peer, tcp};
use crate::objects::security_groups;
use crate::{FullSpec, Subnet, SubnetType, tags};
use cloud::{
    Cloud, Lb, LbListener, LbTargetGroup, SecurityGroup, SecurityGroupRule, SubnetMapping,
};
use engine::Ref;
use node::config::Role;
use node::names;
use std::collections::BTreeMap;

const SSH: u16 = 22;

fn any(full: &FullSpec) -> bool {
    full.groups.iter().any(|group| group.role == Role::Bastion)
}

pub(super) fn build(full: &FullSpec) -> Vec<Cloud> {
    if !any(full) {
        return Vec::new();
    }
    let logical_name = names::bastion_load_balancer(&full.name);
    let group = target_group(full, "bastion", SSH);
    let listener = LbListener {
        name: format!("{logical_name}-{SSH}"),
        load_balancer_arn: super::own::<Lb>(&logical_name),
        port: SSH.into(),
        protocol: "TCP".into(),
        certificate_arn: None,
        ssl_policy: None,
        target_group_arn: super::own::<LbTargetGroup>(&group.name),
    };
    let mapping = places(full).into_iter().map(|place| SubnetMapping {
        subnet_id: super::subnet(full, place),
        allocation_id: None,
        private_ipv4_address: None,
    });
    let more = full.bastion.additional_security_groups.iter();
    let balancer = Lb {
        name: names::load_balancer(&logical_name),
        lb_type: "network".into(),
        scheme: scheme(full.bastion.internal).into(),
        security_groups: super::sorted(more.cloned().map(Ref::Given).chain([front(full).group])),
        subnet_mappings: super::sorted(mapping),
        cross_zone_enabled: false,
        access_logs: None,
        tags: tags(full, &logical_name),
        logical_name,
    };
    let name = names::bastion_security_group(&full.name);
    let own_group = security_groups::group(full, name, "Security group for bastion ELB");
    let of_machines = security_groups::of_role(full, Role::Bastion);
    let all = [own_group, group.into(), listener.into(), balancer.into()];
    all.into_iter().chain(of_machines).collect()
}

/// The name of the balancer in the hosted zone, if it has one.
pub(super) fn public_name(full: &FullSpec) -> Option<&String> {
    full.bastion.public_name.as_ref().filter(|_| any(full))
}

/// Names of the target groups that bastions join.
pub(super) fn target_groups(full: &FullSpec) -> Vec<String> {
    vec![names::target_group(&full.name, "bastion")]
}

/// The subnets that the balancer stands in, private ones for an internal balancer: one a zone, a utility subnet
/// before others, then one that bastions use.
fn places(full: &FullSpec) -> Vec<&Subnet> {
    let used = |subnet: &Subnet| {
        let bastions = full.groups.iter().filter(|one| one.role == Role::Bastion);
        bastions
            .flat_map(|one| &one.subnets)
            .any(|name| *name == subnet.name)
    };
    let worth = |subnet: &Subnet| (subnet.kind == SubnetType::Utility, used(subnet));
    let mut best: BTreeMap<&str, &Subnet> = BTreeMap::new();
    for subnet in &full.network.subnets {
        if (subnet.kind == SubnetType::Private) != full.bastion.internal {
            continue;
        }
        let held = best.entry(&subnet.zone).or_insert(subnet);
        if worth(subnet) > worth(held) {
            *held = subnet;
        }
    }
    best.into_values().collect()
}

fn front(full: &FullSpec) -> Peer {
    let name = names::bastion_security_group(&full.name);
    Peer {
        suffix: String::new(),
        group: super::own::<SecurityGroup>(&name),
        name,
    }
}

/// SSH goes from outside to the balancer, from there to bastions, and from bastions to all machines.
pub(super) fn rules(full: &FullSpec) -> Vec<SecurityGroupRule> {
    if !any(full) {
        return Vec::new();
    }
    let front = front(full);
    let ssh = tcp(SSH, SSH);
    let mut all = rules::egress(&front);
    // The balancer checks the health of bastions from its own subnets.
    let checks = places(full).into_iter().map(|place| place.cidr.to_string());
    for from in full.ssh_access.iter().cloned().chain(checks) {
        all.push(rules::from_outside(&from, ssh, &front));
        all.extend(rules::path_mtu("ssh-nlb", &from, &front));
    }
    let machines = [Role::ControlPlane, Role::Node].map(|role| security_groups::peers(full, role));
    for bastion in security_groups::peers(full, Role::Bastion) {
        all.extend(rules::egress(&bastion));
        all.push(rules::from_group(&front, ssh, &bastion));
        all.push(rules::from_group(&front, PATH_MTU, &bastion));
        all.push(rules::from_group(&bastion, PATH_MTU, &front));
        let to = machines.iter().flatten();
        all.extend(to.map(|machine| rules::from_group(&bastion, ssh, machine)));
    }
    all
}
