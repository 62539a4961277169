//! Packets from hosts as they reach the router: the source check, and the VPC route table's word on what leaves the VPC.

use super::super::names::{INTERNET_LINK, INTERNET_RANGE, PUBLIC_MARK, nft_identifier};
use super::super::topology::{RouteVia, Topology};
use super::{Table, goto_element, quote_link};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

pub(super) fn write_translation(topology: &Topology<'_>, table: &mut Table) {
    let checked = || {
        topology
            .hosts
            .iter()
            .filter(|host| host.instance.source_dest_check)
    };
    table.add_set(
        "checked",
        "ifname",
        checked().map(|host| quote_link(&host.link)),
    );
    table.add_set(
        "own",
        "ifname . ipv4_addr",
        checked().map(|host| format!("\"{}\" . {}", host.link, host.instance.address)),
    );
    public_addresses(topology, table);
    for (id, routes) in &topology.tables {
        table.add_chain(
            &format!("routes_{}", nft_identifier(id)),
            route_rules(&routes.routes),
        );
    }
    let routed = topology
        .hosts
        .iter()
        .filter(|host| topology.tables.contains_key(host.table));
    table.add_map(
        "routes",
        "ifname : verdict",
        routed.map(|host| {
            goto_element(
                quote_link(&host.link),
                format!("routes_{}", nft_identifier(host.table)),
            )
        }),
    );
    let mark = format!("ct mark != 0 meta mark set {PUBLIC_MARK:#x} accept");
    let inside = format!("iifname {{ \"lo\", \"{INTERNET_LINK}\" }} accept");
    let rules = [
        inside.as_str(),
        "udp sport 68 udp dport 67 accept",
        "iifname @checked iifname . ip saddr != @own drop",
        "ip daddr 169.254.0.0/16 accept",
        // Answers go back the way the connection came, whatever routes say.
        "ct direction reply goto answer",
        "iifname vmap @routes",
        "drop",
    ];
    table.add_chain("answer", [mark.as_str(), "accept"]);
    table.add_hook(
        "arrive",
        "filter hook prerouting priority -160; policy accept",
        rules,
    );
}

/// Public addresses: of what they may be the source, and that they exist.
fn public_addresses(topology: &Topology<'_>, table: &mut Table) {
    let instances = topology
        .hosts
        .iter()
        .filter_map(|host| Some((host, host.instance.public_address?)));
    let reachable = instances
        .clone()
        .filter(|(host, _)| topology.is_public(&host.instance.subnet));
    table.add_map(
        "public_instances",
        "ipv4_addr : ipv4_addr",
        reachable.map(|(host, public)| format!("{public} : {}", host.instance.address)),
    );
    table.add_map(
        "public_of",
        "ipv4_addr : mark",
        instances.clone().map(|(host, public)| {
            format!("{} : {}", host.instance.address, connection_mark(public))
        }),
    );
    let balancers = topology
        .balancers
        .iter()
        .flat_map(|balancer| &balancer.addresses)
        .filter_map(|at| at.public_address);
    let mut known: BTreeSet<_> = instances.map(|(_, public)| public).collect();
    let gateways = topology
        .world
        .nat_gateways
        .iter()
        .filter_map(|gateway| gateway.public_address);
    let sources: BTreeSet<_> = known.iter().copied().chain(gateways).collect();
    known.extend(balancers);
    table.add_map(
        "public_sources",
        "mark : ipv4_addr",
        sources
            .iter()
            .map(|public| format!("{} : {public}", connection_mark(*public))),
    );
    table.add_set("public", "ipv4_addr", known);
}

/// A connection's mark is the public address that the world sees as its source.
fn connection_mark(public: Ipv4Addr) -> String {
    format!("{:#010x}", u32::from(public))
}

/// The longest prefix first, as in the table; what leaves by a gateway leaves towards the lab's internet only.
fn route_rules(routes: &[(ipnet::Ipv4Net, RouteVia<'_>)]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut rules = Vec::new();
    for (range, via) in routes.iter().filter(|(range, _)| seen.insert(*range)) {
        let to = if range.prefix_len() == 0 {
            String::new()
        } else {
            format!("ip daddr {range} ")
        };
        match via {
            RouteVia::Local | RouteVia::Instance(_) => rules.push(format!("{to}accept")),
            RouteVia::Blackhole => rules.push(format!("{to}drop")),
            RouteVia::InternetGateway => {
                rules.extend(gateway_rules(&to, "ip saddr map @public_of"));
            }
            RouteVia::NatGateway(public) => {
                rules.extend(gateway_rules(&to, &connection_mark(*public)));
            }
        }
    }
    rules.push("drop".to_owned());
    rules
}

/// A source that is no key of the map ends the rule, and the next drops it: no public address, no internet gateway.
fn gateway_rules(to: &str, source: &str) -> [String; 3] {
    let set = format!("ct mark set {source} meta mark set {PUBLIC_MARK:#x} accept");
    [
        format!("{to}ip daddr {INTERNET_RANGE} {set}"),
        format!("{to}ip daddr @public {set}"),
        format!("{to}drop"),
    ]
}
