//! Helpers that build security group rules: each has one peer, one range of ports, and kOps' name.

use cloud::reach::Traffic;
use cloud::{Cloud, RuleSource, SecurityGroupRule};
use engine::Ref;
use std::collections::BTreeMap;

/// A security group on one side of a rule.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    /// Its name in rule names: `masters.NAME`, or `SG-ID-ControlPlane` for one of the user.
    pub(super) name: String,
    /// `-SG-ID` for one of the user, to make rule names unique; otherwise empty.
    pub(super) suffix: String,
    pub(super) group: Ref,
}

/// All protocols and ports.
pub(super) const ALL: Traffic = Traffic::ALL;
/// IPv4 packets in IPv4 packets, protocol 4. AWS stores no ports for it.
pub(super) const IP_IN_IP: Traffic = Traffic {
    protocol: "4",
    from: -1,
    to: -1,
};
/// Encrypted packets of IPsec (ESP), protocol 50.
pub(super) const ESP: Traffic = Traffic {
    protocol: "50",
    from: -1,
    to: -1,
};
/// "Fragmentation needed": without it, path MTU discovery fails at a load balancer. ICMP type 3, code 4.
pub(super) const PATH_MTU: Traffic = Traffic {
    protocol: "icmp",
    from: 3,
    to: 4,
};
/// The same for IPv6, where AWS takes no single type.
pub(super) const PATH_MTU_V6: Traffic = Traffic {
    protocol: "icmpv6",
    from: -1,
    to: -1,
};

pub(super) const fn tcp_ports(from: u16, to: u16) -> Traffic {
    Traffic {
        protocol: "tcp",
        from: from as i32,
        to: to as i32,
    }
}

pub(super) const fn udp_ports(from: u16, to: u16) -> Traffic {
    Traffic {
        protocol: "udp",
        from: from as i32,
        to: to as i32,
    }
}

/// Rules that allow all outgoing traffic, IPv4 and IPv6.
pub(super) fn egress_rules(of: &Peer) -> Vec<SecurityGroupRule> {
    ["0.0.0.0/0", "::/0"]
        .map(|to| SecurityGroupRule {
            name: format!("from-{}-egress-{}-{to}", of.name, traffic_name(ALL)),
            is_egress: true,
            ..ingress_rule(String::new(), of, RuleSource::parse_peer(to), ALL)
        })
        .into()
}

/// An ingress rule from a range or prefix list, with a derived name.
pub(super) fn range_rule(text: &str, traffic: Traffic, to: &Peer) -> SecurityGroupRule {
    let name = format!("from-{text}-ingress-{}-{}", traffic_name(traffic), to.name);
    ingress_rule(name, to, RuleSource::parse_peer(text), traffic)
}

/// An ingress rule from another security group, with a derived name.
pub(super) fn group_rule(from: &Peer, traffic: Traffic, to: &Peer) -> SecurityGroupRule {
    let name = format!(
        "from-{}-ingress-{}-{}",
        from.name,
        traffic_name(traffic),
        to.name
    );
    named_group_rule(name, from, traffic, to)
}

/// An ingress rule from another security group, with a given name.
pub(super) fn named_group_rule(
    name: String,
    from: &Peer,
    traffic: Traffic,
    to: &Peer,
) -> SecurityGroupRule {
    let source = RuleSource::ReferencedGroupId(from.group.clone());
    ingress_rule(name, to, source, traffic)
}

/// Ingress rules for path MTU discovery from a range. `what` is the middle of the name.
pub(super) fn path_mtu_rules(what: &str, text: &str, to: &Peer) -> Vec<SecurityGroupRule> {
    let source = RuleSource::parse_peer(text);
    let rules = path_mtu_traffic(&source).iter().map(|traffic| {
        let name = format!("{}-pmtu-{what}-{text}", traffic.protocol);
        ingress_rule(name, to, source.clone(), *traffic)
    });
    rules.collect()
}

/// Path MTU discovery by ICMP or ICMPv6, for a prefix list by both.
pub(super) fn path_mtu_traffic(source: &RuleSource) -> &'static [Traffic] {
    match source {
        RuleSource::CidrIpv6(_) => &[PATH_MTU_V6],
        RuleSource::PrefixListId(_) => &[PATH_MTU, PATH_MTU_V6],
        RuleSource::CidrIpv4(_) | RuleSource::ReferencedGroupId(_) => &[PATH_MTU],
    }
}

/// An ingress rule with a given name.
pub(super) fn ingress_rule(
    name: String,
    to: &Peer,
    source: RuleSource,
    traffic: Traffic,
) -> SecurityGroupRule {
    SecurityGroupRule {
        name,
        group_id: to.group.clone(),
        is_egress: false,
        ip_protocol: traffic.protocol.to_owned(),
        from_port: traffic.from,
        to_port: traffic.to,
        source,
    }
}

/// Removes rules with equal content: AWS refuses duplicates, and two roles may share a security group of the user.
pub(super) fn distinct_rules(rules: Vec<SecurityGroupRule>) -> Vec<Cloud> {
    let mut by_content = BTreeMap::new();
    let mut rules = rules;
    rules.sort_by(|a, b| a.name.cmp(&b.name));
    for rule in rules {
        by_content.entry(rule.rule_key()).or_insert(rule);
    }
    by_content.into_values().map(Cloud::from).collect()
}

fn traffic_name(traffic: Traffic) -> String {
    match traffic.protocol {
        "-1" => "all-0to0".to_owned(),
        // Without ports.
        "4" => "4-0to0".to_owned(),
        protocol => format!("{protocol}-{}to{}", traffic.from, traffic.to),
    }
}
