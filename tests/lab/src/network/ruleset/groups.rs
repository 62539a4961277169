//! Security groups. A host's or balancer's rules are the union of its groups'; a peer is a range, or a group's members:
//! as on AWS those are network interfaces, known by the link that a packet uses, whatever source its pods give it.

use super::super::family::Family;
use super::super::names::nft_identifier;
use super::super::topology::{Topology, parse_range};
use super::services::router_answers;
use super::{Table, goto_element, quote_link};
use crate::aws_state::{LoadBalancer, Rule, SecurityGroup};
use ipnet::IpNet;
use std::collections::BTreeSet;

/// Direct means: private, and not by way of a balancer, whose groups count then instead of the sender's.
fn direct(family: Family) -> String {
    let word = family.word();
    format!("ct mark 0 ct original {word} daddr != @balancers")
}

/// The sets of each group's members: links of hosts, addresses of balancers.
pub(super) fn write_membership(topology: &Topology<'_>, table: &mut Table) {
    for group in &topology.world.security_groups {
        let name = nft_identifier(&group.id);
        let hosts = topology
            .hosts
            .iter()
            .filter(|host| host.instance.security_groups.contains(&group.id));
        table.add_set(
            &format!("links_{name}"),
            "ifname",
            hosts.map(|host| quote_link(&host.link)),
        );
        let members = topology
            .balancers
            .iter()
            .filter(|balancer| balancer.security_groups.contains(&group.id));
        let family = table.family;
        let addresses = members.flat_map(|balancer| &balancer.addresses);
        table.add_set(
            &format!("balancers_{name}"),
            family.address_type(),
            addresses.flat_map(|at| family.all_balancer_addresses(at)),
        );
    }
}

pub(super) fn write_groups(topology: &Topology<'_>, table: &mut Table) {
    let family = table.family;
    for group in &topology.world.security_groups {
        let name = nft_identifier(&group.id);
        table.add_chain(
            &format!("ingress_{name}"),
            group
                .ingress
                .iter()
                .flat_map(|rule| to_host(topology, rule, family)),
        );
        table.add_chain(
            &format!("egress_{name}"),
            group
                .egress
                .iter()
                .flat_map(|rule| from_host(topology, rule, family)),
        );
        if topology
            .balancers
            .iter()
            .any(|balancer| balancer.security_groups.contains(&group.id))
        {
            table.add_chain(
                &format!("to_balancer_{name}"),
                group
                    .ingress
                    .iter()
                    .flat_map(|rule| to_balancer(topology, rule, family)),
            );
            table.add_chain(
                &format!("from_balancer_{name}"),
                group
                    .egress
                    .iter()
                    .flat_map(|rule| from_balancer(topology, rule, family)),
            );
        }
    }
    write_host_chains(topology, table);
    write_balancer_chains(topology, table);
}

fn write_host_chains(topology: &Topology<'_>, table: &mut Table) {
    for host in &topology.hosts {
        for way in ["ingress", "egress"] {
            let chain = format!("{way}_{}", host.link);
            table.add_chain(
                &chain,
                union_chain(way, &host.instance.security_groups, topology),
            );
        }
    }
    let verdicts = |way: &'static str| {
        topology
            .hosts
            .iter()
            .map(move |host| goto_element(quote_link(&host.link), format!("{way}_{}", host.link)))
    };
    table.add_map("egress", "ifname : verdict", verdicts("egress"));
    table.add_map("ingress", "ifname : verdict", verdicts("ingress"));
    let rules = [
        "ct state established,related accept",
        router_answers(table.family),
        "oifname vmap @ingress",
        "oifname \"h*\" drop",
    ];
    table.add_hook(
        "ingress_hosts",
        "filter hook postrouting priority 130; policy accept",
        rules,
    );
}

/// Balancers without groups let everything pass, as on AWS.
fn write_balancer_chains(topology: &Topology<'_>, table: &mut Table) {
    let guarded: Vec<_> = topology
        .balancers
        .iter()
        .filter(|balancer| !balancer.security_groups.is_empty())
        .collect();
    let chain =
        |way: &str, balancer: &LoadBalancer| format!("{way}_{}", nft_identifier(&balancer.arn));
    for balancer in &guarded {
        for way in ["to_balancer", "from_balancer"] {
            table.add_chain(
                &chain(way, balancer),
                union_chain(way, &balancer.security_groups, topology),
            );
        }
    }
    let family = table.family;
    for (way, key, priority) in [
        ("to_balancer", "daddr", 110),
        ("from_balancer", "daddr", 120),
        ("checks_of_balancer", "saddr", 121),
    ] {
        let target = if way == "to_balancer" {
            way
        } else {
            "from_balancer"
        };
        let elements = guarded.iter().flat_map(|balancer| {
            let addresses = balancer.addresses.iter();
            addresses
                .flat_map(|at| family.all_balancer_addresses(at))
                .map(|address| goto_element(address, chain(target, balancer)))
                .collect::<Vec<_>>()
        });
        let map = format!("{way}_addresses");
        table.add_map(
            &map,
            &format!("{} : verdict", family.address_type()),
            elements,
        );
        let rules = [
            "ct state established,related accept".to_owned(),
            format!("ct original {} {key} vmap @{map}", family.word()),
        ];
        table.add_hook(
            &format!("{way}_groups"),
            &format!("filter hook postrouting priority {priority}; policy accept"),
            rules,
        );
    }
}

/// A chain that accepts what any of the groups accepts.
fn union_chain(way: &str, groups: &[String], topology: &Topology<'_>) -> Vec<String> {
    let known: BTreeSet<_> = topology
        .world
        .security_groups
        .iter()
        .map(|group: &SecurityGroup| &group.id)
        .collect();
    let existing = groups
        .iter()
        .filter(|id| known.contains(id))
        .collect::<BTreeSet<_>>();
    let jumps = existing
        .iter()
        .map(|id| format!("jump {way}_{}", nft_identifier(id)));
    jumps.chain(["drop".to_owned()]).collect()
}

/// Who is at the other end, in nft's words; empty when nobody can be.
enum Peer {
    Anyone,
    Range(IpNet),
    Group(String),
    Nobody,
}

fn rule_peer(topology: &Topology<'_>, rule: &Rule, family: Family) -> Peer {
    if let Some(id) = &rule.group {
        let known = topology
            .world
            .security_groups
            .iter()
            .any(|group| group.id == *id);
        return if known {
            Peer::Group(nft_identifier(id))
        } else {
            Peer::Nobody
        };
    }
    match rule
        .cidr
        .as_deref()
        .map(|cidr| parse_range("a security group's rule", cidr))
    {
        Some(Ok(Some(range))) if Family::of_range(range) != family => Peer::Nobody,
        Some(Ok(Some(range))) if range.prefix_len() == 0 => Peer::Anyone,
        Some(Ok(Some(range))) => Peer::Range(range),
        _ => Peer::Nobody,
    }
}

/// At the receiving host, after all translation.
fn to_host(topology: &Topology<'_>, rule: &Rule, family: Family) -> Vec<String> {
    let word = family.word();
    let peers = match rule_peer(topology, rule, family) {
        Peer::Anyone => vec![String::new()],
        Peer::Range(range) => vec![format!("{word} saddr {range}")],
        Peer::Group(group) => vec![
            format!("iifname @links_{group} {}", direct(family)),
            format!("ct original {word} daddr @balancers_{group}"),
            format!("{word} saddr @balancers_{group}"),
        ],
        Peer::Nobody => vec![],
    };
    accept_rules(rule, family, "th dport", &peers)
}

/// At the sending host: what it meant to reach, before any translation.
fn from_host(topology: &Topology<'_>, rule: &Rule, family: Family) -> Vec<String> {
    let word = family.word();
    let peers = match rule_peer(topology, rule, family) {
        Peer::Anyone => vec![String::new()],
        Peer::Range(range) => vec![format!("ct original {word} daddr {range}")],
        Peer::Group(group) => vec![
            format!("oifname @links_{group} {}", direct(family)),
            format!("ct mark 0 ct original {word} daddr @balancers_{group}"),
        ],
        Peer::Nobody => vec![],
    };
    accept_rules(rule, family, "ct original proto-dst", &peers)
}

/// At a balancer: the client is who the connection comes from, under its public address (the mark) if it has used that.
fn to_balancer(topology: &Topology<'_>, rule: &Rule, family: Family) -> Vec<String> {
    let word = family.word();
    let peers = match rule_peer(topology, rule, family) {
        Peer::Anyone => vec![String::new()],
        Peer::Range(IpNet::V4(range)) => vec![
            format!("ct mark 0 ct original ip saddr {range}"),
            format!(
                "ct mark != 0 ct mark & {:#010x} == {:#010x}",
                u32::from(range.netmask()),
                u32::from(range.network())
            ),
        ],
        // Which is the same everywhere.
        Peer::Range(range) => vec![format!("ct original {word} saddr {range}")],
        Peer::Group(group) => vec![format!("ct mark 0 iifname @links_{group}")],
        Peer::Nobody => vec![],
    };
    accept_rules(rule, family, "ct original proto-dst", &peers)
}

/// From a balancer to its target.
fn from_balancer(topology: &Topology<'_>, rule: &Rule, family: Family) -> Vec<String> {
    let word = family.word();
    let peers = match rule_peer(topology, rule, family) {
        Peer::Anyone => vec![String::new()],
        Peer::Range(range) => vec![format!("{word} daddr {range}")],
        Peer::Group(group) => vec![format!("oifname @links_{group}")],
        Peer::Nobody => vec![],
    };
    accept_rules(rule, family, "th dport", &peers)
}

fn accept_rules(rule: &Rule, family: Family, port: &str, peers: &[String]) -> Vec<String> {
    let Some(protocol) = protocol_match(rule, family, port) else {
        return Vec::new();
    };
    let words = |peer: &String| {
        let parts = [protocol.as_str(), peer.as_str(), "accept"];
        parts
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    };
    peers.iter().map(words).collect()
}

/// `None` for what the family never carries, and for what is no protocol.
fn protocol_match(rule: &Rule, family: Family, port: &str) -> Option<String> {
    let number = match rule.protocol.as_str() {
        "-1" => return Some(String::new()),
        "tcp" => 6,
        "udp" => 17,
        "icmp" => 1,
        "icmpv6" => 58,
        other => other.parse::<u8>().ok()?,
    };
    let given = |value: Option<i32>| value.filter(|value| *value >= 0);
    match (number, family, given(rule.from), given(rule.to)) {
        (58, Family::V4, _, _) | (1, Family::V6, _, _) => None,
        (6 | 17, _, Some(from), Some(to)) => Some(format!(
            "meta l4proto {number} {port} {}",
            port_match(from, to)?
        )),
        (1, _, Some(kind), code) => icmp_match("icmp", kind, code),
        (58, _, Some(kind), code) => icmp_match("icmpv6", kind, code),
        (number, ..) => Some(format!("meta l4proto {number}")),
    }
}

fn port_match(from: i32, to: i32) -> Option<String> {
    let (from, to) = (u16::try_from(from).ok()?, u16::try_from(to).ok()?);
    (from <= to).then(|| {
        if from == to {
            from.to_string()
        } else {
            format!("{from}-{to}")
        }
    })
}

/// Both are bytes; greater numbers are of no packet.
fn icmp_match(protocol: &str, kind: i32, code: Option<i32>) -> Option<String> {
    let kind = format!("{protocol} type {}", u8::try_from(kind).ok()?);
    match code {
        None => Some(kind),
        Some(code) => Some(format!(
            "{kind} {protocol} code {}",
            u8::try_from(code).ok()?
        )),
    }
}
