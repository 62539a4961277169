//! What hosts may ask the router itself (metadata, names, the lab's internet), what it may send them, and forwarding.

use super::super::names::{INTERNET_LINK, INTERNET_RANGE, METADATA};
use super::super::topology::Topology;
use super::{Table, quote_link};
use std::collections::BTreeSet;

pub(super) fn write_services(topology: &Topology<'_>, table: &mut Table) {
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
    let own = format!("{{ \"lo\", \"{INTERNET_LINK}\" }} accept");
    let front = format!("ip daddr {INTERNET_RANGE} ct mark != 0 iifname vmap @egress");
    let input = [
        // A balancer's address is the router's own, but the operator is on the internet.
        "iifname \"lo\" ip daddr @balancer_links drop".to_owned(),
        format!("iifname {own}"),
        "jump drain".to_owned(),
        "ct state established,related accept".to_owned(),
        "ct state invalid drop".to_owned(),
        // No security group stands between a host and these.
        "udp dport 67 accept".to_owned(),
        "ip daddr { 169.254.169.253, 169.254.169.254 } accept".to_owned(),
        "iifname . ip daddr @resolvers accept".to_owned(),
        front,
    ];
    table.add_hook("input", "filter hook input priority 0; policy drop", input);
    let output = [
        "jump drain".to_owned(),
        format!("oifname {own}"),
        "ct state established,related accept".to_owned(),
        // The operator, by a public address.
        "ct status dnat accept".to_owned(),
        // Health checks.
        "ip saddr @balancer_links accept".to_owned(),
        "ip saddr @gateways udp sport 67 udp dport 68 accept".to_owned(),
    ];
    table.add_hook(
        "output",
        "filter hook output priority 0; policy drop",
        output,
    );
    write_hop_limits(topology, table);
    let forward = [
        "jump drain",
        "oifname @checked oifname . ip daddr != @own drop",
        "ct state established,related accept",
        "ct state invalid drop",
        "iifname vmap @egress",
    ];
    table.add_hook(
        "forward",
        "filter hook forward priority 0; policy drop",
        forward,
    );
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
        rules.push(format!(
            "oifname @hops_{limit} ip saddr {METADATA} ip ttl set {limit}"
        ));
    }
    table.add_hook(
        "metadata_hops",
        "filter hook postrouting priority 140; policy accept",
        rules,
    );
}
