//! How security group rules are written: one peer, one range of ports, kOps' name.

use cloud::{Cloud, RuleSource, SecurityGroupRule};
use engine::Ref;
use std::collections::BTreeMap;

/// A security group on one side of a rule: its name in rule names, and what it is.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    /// `masters.NAME`; `SG-ID-ControlPlane` for one of the user's.
    pub(super) name: String,
    /// `-SG-ID` for one of the user's, behind rule names that would be equal otherwise.
    pub(super) suffix: String,
    /// The group.
    pub(super) group: Ref,
}

/// Protocol and ports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traffic {
    protocol: &'static str,
    from: i32,
    to: i32,
}

/// Everything.
pub(super) const ALL: Traffic = Traffic {
    protocol: "-1",
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

/// TCP ports.
pub(super) const fn tcp(from: u16, to: u16) -> Traffic {
    Traffic {
        protocol: "tcp",
        from: from as i32,
        to: to as i32,
    }
}

/// UDP ports.
pub(super) const fn udp(from: u16, to: u16) -> Traffic {
    Traffic {
        protocol: "udp",
        from: from as i32,
        to: to as i32,
    }
}

/// Everything out, to IPv4 and IPv6.
pub(super) fn egress(of: &Peer) -> Vec<SecurityGroupRule> {
    ["0.0.0.0/0", "::/0"]
        .map(|to| SecurityGroupRule {
            name: format!("from-{}-egress-{}-{to}", of.name, described(ALL)),
            is_egress: true,
            ..rule(String::new(), of, RuleSource::of(to), ALL)
        })
        .into()
}

/// In, from a range or prefix list, with a name that says so.
pub(super) fn from_outside(text: &str, traffic: Traffic, to: &Peer) -> SecurityGroupRule {
    let name = format!("from-{text}-ingress-{}-{}", described(traffic), to.name);
    rule(name, to, RuleSource::of(text), traffic)
}

/// In, from another group, with a name that says so.
pub(super) fn from_group(from: &Peer, traffic: Traffic, to: &Peer) -> SecurityGroupRule {
    let name = format!(
        "from-{}-ingress-{}-{}",
        from.name,
        described(traffic),
        to.name
    );
    named(name, from, traffic, to)
}

/// In, from another group, under a name of its own.
pub(super) fn named(name: String, from: &Peer, traffic: Traffic, to: &Peer) -> SecurityGroupRule {
    let source = RuleSource::ReferencedGroupId(from.group.clone());
    rule(name, to, source, traffic)
}

/// Path MTU discovery from a range: ICMP or ICMPv6, a prefix list both. `what` is the middle of the name.
pub(super) fn path_mtu(what: &str, text: &str, to: &Peer) -> Vec<SecurityGroupRule> {
    let v4 = || {
        let name = format!("icmp-pmtu-{what}-{text}");
        rule(name, to, RuleSource::of(text), PATH_MTU)
    };
    let v6 = || {
        let name = format!("icmpv6-pmtu-{what}-{text}");
        rule(name, to, RuleSource::of(text), PATH_MTU_V6)
    };
    match RuleSource::of(text) {
        RuleSource::CidrIpv6(_) => vec![v6()],
        RuleSource::PrefixListId(_) => vec![v4(), v6()],
        RuleSource::CidrIpv4(_) | RuleSource::ReferencedGroupId(_) => vec![v4()],
    }
}

/// In, under a given name.
pub(super) fn rule(
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

/// Rules of one content once: AWS refuses a second, and two roles may share a group of the user's.
pub(super) fn distinct(rules: Vec<SecurityGroupRule>) -> Vec<Cloud> {
    let mut by_content = BTreeMap::new();
    let mut rules = rules;
    rules.sort_by(|a, b| a.name.cmp(&b.name));
    for rule in rules {
        by_content.entry(rule.content()).or_insert(rule);
    }
    by_content.into_values().map(Cloud::from).collect()
}

fn described(traffic: Traffic) -> String {
    match traffic.protocol {
        "-1" => "all-0to0".to_owned(),
        protocol => format!("{protocol}-{}to{}", traffic.from, traffic.to),
    }
}
