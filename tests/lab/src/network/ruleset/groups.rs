//! Security groups. A host's or balancer's rules are the union of its groups'; a peer is a range, or a group's members:
//! as on AWS those are network interfaces, known by the link that a packet uses, whatever source its pods give it.

use super::super::names::nft_identifier;
use super::super::topology::{Topology, parse_range};
use super::{Table, goto_element, quote_link};
use crate::aws_state::{LoadBalancer, Rule, SecurityGroup};
use ipnet::Ipv4Net;
use std::collections::BTreeSet;

/// Direct means: private, and not by way of a balancer, whose groups count then instead of the sender's.
const DIRECT: &str = "ct mark 0 ct original ip daddr != @balancers";

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
        let addresses: Vec<_> = members.flat_map(|balancer| &balancer.addresses).collect();
        let public = addresses.iter().filter_map(|at| at.public_address);
        let all: Vec<_> = addresses
            .iter()
            .map(|at| at.address)
            .chain(public)
            .collect();
        table.add_set(&format!("balancers_{name}"), "ipv4_addr", all);
    }
}

pub(super) fn write_groups(topology: &Topology<'_>, table: &mut Table) {
    for group in &topology.world.security_groups {
        let name = nft_identifier(&group.id);
        table.add_chain(
            &format!("ingress_{name}"),
            group
                .ingress
                .iter()
                .flat_map(|rule| to_host(topology, rule)),
        );
        table.add_chain(
            &format!("egress_{name}"),
            group
                .egress
                .iter()
                .flat_map(|rule| from_host(topology, rule)),
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
                    .flat_map(|rule| to_balancer(topology, rule)),
            );
            table.add_chain(
                &format!("from_balancer_{name}"),
                group
                    .egress
                    .iter()
                    .flat_map(|rule| from_balancer(topology, rule)),
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
        // Answers of the router's own services to a host that knows no connection yet.
        "ip saddr @gateways udp sport 67 udp dport 68 accept",
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
            let public = balancer.addresses.iter().filter_map(|at| at.public_address);
            let addresses = balancer.addresses.iter().map(|at| at.address).chain(public);
            addresses
                .map(|address| goto_element(address, chain(target, balancer)))
                .collect::<Vec<_>>()
        });
        let map = format!("{way}_addresses");
        table.add_map(&map, "ipv4_addr : verdict", elements);
        let rules = [
            "ct state established,related accept".to_owned(),
            format!("ct original ip {key} vmap @{map}"),
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
    Range(Ipv4Net),
    Group(String),
    Nobody,
}

fn rule_peer(topology: &Topology<'_>, rule: &Rule) -> Peer {
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
        Some(Ok(Some(range))) if range.prefix_len() == 0 => Peer::Anyone,
        Some(Ok(Some(range))) => Peer::Range(range),
        _ => Peer::Nobody,
    }
}

/// At the receiving host, after all translation.
fn to_host(topology: &Topology<'_>, rule: &Rule) -> Vec<String> {
    let peers = match rule_peer(topology, rule) {
        Peer::Anyone => vec![String::new()],
        Peer::Range(range) => vec![format!("ip saddr {range}")],
        Peer::Group(group) => vec![
            format!("iifname @links_{group} {DIRECT}"),
            format!("ct original ip daddr @balancers_{group}"),
            format!("ip saddr @balancers_{group}"),
        ],
        Peer::Nobody => vec![],
    };
    accept_rules(rule, "th dport", &peers)
}

/// At the sending host: what it meant to reach, before any translation.
fn from_host(topology: &Topology<'_>, rule: &Rule) -> Vec<String> {
    let peers = match rule_peer(topology, rule) {
        Peer::Anyone => vec![String::new()],
        Peer::Range(range) => vec![format!("ct original ip daddr {range}")],
        Peer::Group(group) => vec![
            format!("oifname @links_{group} {DIRECT}"),
            format!("ct mark 0 ct original ip daddr @balancers_{group}"),
        ],
        Peer::Nobody => vec![],
    };
    accept_rules(rule, "ct original proto-dst", &peers)
}

/// At a balancer: the client is who the connection comes from, under its public address (the mark) if it has used that.
fn to_balancer(topology: &Topology<'_>, rule: &Rule) -> Vec<String> {
    let peers = match rule_peer(topology, rule) {
        Peer::Anyone => vec![String::new()],
        Peer::Range(range) => vec![
            format!("ct mark 0 ct original ip saddr {range}"),
            format!(
                "ct mark != 0 ct mark & {:#010x} == {:#010x}",
                u32::from(range.netmask()),
                u32::from(range.network())
            ),
        ],
        Peer::Group(group) => vec![format!("ct mark 0 iifname @links_{group}")],
        Peer::Nobody => vec![],
    };
    accept_rules(rule, "ct original proto-dst", &peers)
}

/// From a balancer to its target.
fn from_balancer(topology: &Topology<'_>, rule: &Rule) -> Vec<String> {
    let peers = match rule_peer(topology, rule) {
        Peer::Anyone => vec![String::new()],
        Peer::Range(range) => vec![format!("ip daddr {range}")],
        Peer::Group(group) => vec![format!("oifname @links_{group}")],
        Peer::Nobody => vec![],
    };
    accept_rules(rule, "th dport", &peers)
}

fn accept_rules(rule: &Rule, port: &str, peers: &[String]) -> Vec<String> {
    let Some(protocol) = protocol_match(rule, port) else {
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

/// `None` for what IPv4 never carries, and for what is no protocol.
fn protocol_match(rule: &Rule, port: &str) -> Option<String> {
    let number = match rule.protocol.as_str() {
        "-1" => return Some(String::new()),
        "tcp" => 6,
        "udp" => 17,
        "icmp" => 1,
        "icmpv6" => return None,
        other => other.parse::<u8>().ok()?,
    };
    let given = |value: Option<i32>| value.filter(|value| *value >= 0);
    match (number, given(rule.from), given(rule.to)) {
        (58, _, _) => None,
        (6 | 17, Some(from), Some(to)) => Some(format!(
            "meta l4proto {number} {port} {}",
            port_match(from, to)?
        )),
        (1, Some(kind), code) => icmp_match(kind, code),
        (number, _, _) => Some(format!("meta l4proto {number}")),
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
fn icmp_match(kind: i32, code: Option<i32>) -> Option<String> {
    let kind = format!("icmp type {}", u8::try_from(kind).ok()?);
    match code {
        None => Some(kind),
        Some(code) => Some(format!("{kind} icmp code {}", u8::try_from(code).ok()?)),
    }
}
