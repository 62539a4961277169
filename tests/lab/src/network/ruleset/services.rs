//! What hosts may ask the router itself (metadata, names, the lab's internet), what it may send them, and forwarding.

use super::super::family::Family;
use super::super::names::INTERNET_LINK;
use super::super::topology::Topology;
use super::{Table, quote_link};
use std::collections::BTreeSet;

pub(super) fn write_services(topology: &Topology<'_>, table: &mut Table) {
    if table.family == Family::V4 {
        write_ipv4_sets(topology, table);
    }
    write_input(table);
    write_output(table);
    write_hop_limits(topology, table);
    let forward = [
        "jump drain".to_owned(),
        format!(
            "oifname @checked oifname . {} daddr != @own drop",
            table.family.word()
        ),
        "ct state established,related accept".to_owned(),
        "ct state invalid drop".to_owned(),
        "iifname vmap @egress".to_owned(),
    ];
    table.add_hook(
        "forward",
        "filter hook forward priority 0; policy drop",
        forward,
    );
}

/// The addresses that the router has in subnets, and the resolvers of VPCs.
fn write_ipv4_sets(topology: &Topology<'_>, table: &mut Table) {
    table.add_set(
        "gateways",
        "ipv4_addr",
        topology.subnets.values().map(|net| net.gateway),
    );
    let resolvers = topology.hosts.iter().filter_map(|host| {
        let vpc = topology.vpcs.get(host.instance.vpc.as_str())?;
        Some(format!("\"{}\" . {}", host.link, vpc.resolver))
    });
    table.add_set("resolvers", "ifname . ipv4_addr", resolvers);
}

/// Packets between the router and itself, and from the operator's internet.
fn own_links() -> String {
    format!("{{ \"lo\", \"{INTERNET_LINK}\" }} accept")
}

fn write_input(table: &mut Table) {
    let family = table.family;
    let word = family.word();
    // No security group stands between a host and these; neighbours belong to no connection.
    let (neighbours, served) = match family {
        Family::V4 => (
            None,
            &[
                "udp dport 67 accept",
                "iifname . ip daddr @resolvers accept",
            ][..],
        ),
        Family::V6 => (
            Some(
                "icmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert } accept",
            ),
            &["udp dport 547 accept"][..],
        ),
    };
    let rules = [
        // A balancer's address is the router's own, but the operator is on the internet.
        format!("iifname \"lo\" {word} daddr @balancer_links drop"),
        format!("iifname {}", own_links()),
        "jump drain".to_owned(),
        "ct state established,related accept".to_owned(),
        "ct state invalid drop".to_owned(),
        format!(
            "{word} daddr {{ {}, {} }} accept",
            family.resolver(),
            family.metadata()
        ),
        format!(
            "{word} daddr {} ct mark != 0 iifname vmap @egress",
            family.internet()
        ),
    ];
    let first = neighbours.into_iter().map(str::to_owned);
    let served = served.iter().map(|rule| (*rule).to_owned());
    table.add_hook(
        "input",
        "filter hook input priority 0; policy drop",
        first.chain(rules).chain(served),
    );
}

fn write_output(table: &mut Table) {
    let word = table.family.word();
    let rules = [
        "jump drain".to_owned(),
        format!("oifname {}", own_links()),
        "ct state established,related accept".to_owned(),
        // The operator, by a public address.
        "ct status dnat accept".to_owned(),
        // Health checks.
        format!("{word} saddr @balancer_links accept"),
        router_answers(table.family).to_owned(),
    ];
    table.add_hook(
        "output",
        "filter hook output priority 0; policy drop",
        rules,
    );
}

/// What the router says to a host that knows no connection yet.
pub(super) fn router_answers(family: Family) -> &'static str {
    match family {
        Family::V4 => "ip saddr @gateways udp sport 67 udp dport 68 accept",
        // Only the router has a link-local address on its end of the link: advertisements, neighbours, DHCP.
        Family::V6 => "ip6 saddr fe80::/10 accept",
    }
}

/// The metadata service's answers travel as far as the instance says: with 1 not into a pod's own namespace.
fn write_hop_limits(topology: &Topology<'_>, table: &mut Table) {
    let limits: BTreeSet<_> = topology
        .hosts
        .iter()
        .map(|host| host.instance.hop_limit.max(1))
        .collect();
    let mut rules = Vec::new();
    for limit in limits {
        let near = topology
            .hosts
            .iter()
            .filter(|host| host.instance.hop_limit.max(1) == limit);
        table.add_set(
            &format!("hops_{limit}"),
            "ifname",
            near.map(|host| quote_link(&host.link)),
        );
        let field = match table.family {
            Family::V4 => "ip ttl",
            Family::V6 => "ip6 hoplimit",
        };
        rules.push(format!(
            "oifname @hops_{limit} {} saddr {} {field} set {limit}",
            table.family.word(),
            table.family.metadata()
        ));
    }
    table.add_hook(
        "metadata_hops",
        "filter hook postrouting priority 140; policy accept",
        rules,
    );
}
