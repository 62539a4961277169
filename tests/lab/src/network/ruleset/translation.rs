//! Packets from hosts as they reach the router: the source check, and the VPC route table's word on what leaves the VPC.

use super::super::family::Family;
use super::super::names::{INTERNET_LINK, PUBLIC_MARK, nft_identifier};
use super::super::topology::{RouteVia, Topology};
use super::{Table, goto_element, quote_link};
use ipnet::IpNet;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

pub(super) fn write_translation(topology: &Topology<'_>, table: &mut Table) {
    write_sources(topology, table);
    public_addresses(topology, table);
    let family = table.family;
    for (id, routes) in &topology.tables {
        table.add_chain(
            &format!("routes_{}", nft_identifier(id)),
            route_rules(routes.routes_of(family), family),
        );
    }
    let routed = topology.hosts.iter().filter(|host| {
        topology.tables.contains_key(host.table) && family.reached_address(host.instance).is_some()
    });
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
    let (first, near) = match family {
        Family::V4 => (
            "udp sport 68 udp dport 67 accept",
            "ip daddr 169.254.0.0/16 accept",
        ),
        // From these sources nothing is passed on.
        Family::V6 => (
            "ip6 saddr { ::, fe80::/10 } accept",
            "ip6 daddr { fe80::/10, ff02::/16, fd00:ec2::/32 } accept",
        ),
    };
    let own = format!(
        "iifname @checked iifname . {} saddr != @own drop",
        family.word()
    );
    let rules = [
        inside.as_str(),
        first,
        own.as_str(),
        near,
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

/// Hosts whose sources are checked, and what those are.
fn write_sources(topology: &Topology<'_>, table: &mut Table) {
    let family = table.family;
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
        match family {
            Family::V4 => "ifname . ipv4_addr",
            // Ranges for pods are among them.
            Family::V6 => "ifname . ipv6_addr; flags interval",
        },
        checked().flat_map(|host| {
            let addresses = family.instance_addresses(host.instance).into_iter();
            let all = addresses.map(IpNet::from);
            all.chain(family.pod_ranges(host.instance))
                .map(move |range| format!("\"{}\" . {}", host.link, element_text(range)))
        }),
    );
}

/// Public addresses: of what they may be the source, and that they exist.
fn public_addresses(topology: &Topology<'_>, table: &mut Table) {
    let family = table.family;
    let balancers = topology
        .balancers
        .iter()
        .flat_map(|balancer| &balancer.addresses)
        .filter_map(|at| family.public_balancer_address(at));
    let instances: Vec<IpAddr> = match family {
        Family::V4 => {
            write_public_maps(topology, table);
            let hosts = topology.hosts.iter();
            hosts
                .filter_map(|host| host.instance.public_address.map(IpAddr::V4))
                .collect()
        }
        Family::V6 => {
            let hosts = topology.hosts.iter();
            hosts
                .filter(|host| topology.is_public(&host.instance.subnet, family))
                .flat_map(|host| family.instance_addresses(host.instance))
                .collect()
        }
    };
    table.add_set(
        "public",
        family.address_type(),
        instances.into_iter().chain(balancers),
    );
}

/// What becomes what at an internet gateway or a NAT gateway.
fn write_public_maps(topology: &Topology<'_>, table: &mut Table) {
    let instances = topology
        .hosts
        .iter()
        .filter_map(|host| Some((host, host.instance.public_address?)));
    let reachable = instances
        .clone()
        .filter(|(host, _)| topology.is_public(&host.instance.subnet, Family::V4));
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
    let gateways = topology
        .world
        .nat_gateways
        .iter()
        .filter_map(|gateway| gateway.public_address);
    let sources: BTreeSet<_> = instances
        .map(|(_, public)| public)
        .chain(gateways)
        .collect();
    table.add_map(
        "public_sources",
        "mark : ipv4_addr",
        sources
            .iter()
            .map(|public| format!("{} : {public}", connection_mark(*public))),
    );
}

/// As nft writes ranges in sets: a single address without its length.
fn element_text(range: IpNet) -> String {
    if range.prefix_len() == range.max_prefix_len() {
        range.addr().to_string()
    } else {
        range.to_string()
    }
}

/// A connection's mark is the public address that the world sees as its source.
fn connection_mark(public: Ipv4Addr) -> String {
    format!("{:#010x}", u32::from(public))
}

/// The longest prefix first, as in the table; what leaves by a gateway leaves towards the lab's internet only.
fn route_rules<'a>(
    routes: impl Iterator<Item = (IpNet, RouteVia<'a>)>,
    family: Family,
) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut rules = Vec::new();
    let word = family.word();
    for (range, via) in routes.filter(|(range, _)| seen.insert(*range)) {
        let to = if range.prefix_len() == 0 {
            String::new()
        } else {
            format!("{word} daddr {range} ")
        };
        let (internet, public) = (family.internet(), "@public");
        match (via, family) {
            (RouteVia::Local | RouteVia::Instance(_), _) => {
                rules.push(format!("{to}accept"));
                continue;
            }
            (RouteVia::InternetGateway, Family::V4) => {
                let source = "ip saddr map @public_of";
                rules.extend([internet, public].map(|there| leave_rule(&to, word, there, source)));
            }
            (RouteVia::NatGateway(address), Family::V4) => {
                let source = connection_mark(address);
                rules.extend([internet, public].map(|there| leave_rule(&to, word, there, &source)));
            }
            // An IPv6 address is the same outside; all that the mark says is that the connection goes there.
            (RouteVia::InternetGateway | RouteVia::EgressOnlyGateway, Family::V6) => {
                rules.push(leave_rule(&to, word, public, "1"));
            }
            (RouteVia::NatGateway(_), Family::V6) => {
                rules.push(leave_rule(&to, word, internet, "1"));
            }
            (RouteVia::Blackhole | RouteVia::EgressOnlyGateway, _) => {}
        }
        // What no rule took: also a source that is no key of the map, for which there is no way out.
        rules.push(format!("{to}drop"));
    }
    rules.push("drop".to_owned());
    rules
}

/// Lets out what goes `there`, under the source that the mark says.
fn leave_rule(to: &str, word: &str, there: &str, source: &str) -> String {
    format!("{to}{word} daddr {there} ct mark set {source} meta mark set {PUBLIC_MARK:#x} accept")
}
