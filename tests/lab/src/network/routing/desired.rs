//! The router's state as it follows from the world.

use super::super::family::Family;
use super::super::names;
use super::super::topology::{Host, RouteVia, Table, Topology};
use super::{Hop, Neighbour, Route, Routing, Rule};
use ipnet::IpNet;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// From the world, in one family; routes only over `links`, the ones that exist.
pub fn desired_routing(
    topology: &Topology<'_>,
    links: &BTreeSet<String>,
    family: Family,
) -> Routing {
    let hosts = topology.hosts.iter();
    let attached: Vec<_> = hosts.filter(|host| links.contains(&host.link)).collect();
    let source = |host: &Host<'_>| match family {
        Family::V4 => Some(host.gateway.into()),
        // Nothing begins at the router but what has a source already.
        Family::V6 => None,
    };
    let in_table = |table: u32| {
        move |(destination, hop)| Route {
            table,
            destination,
            hop,
        }
    };
    let main = attached
        .iter()
        .flat_map(|host| host_routes(host, source(host), family));
    let out = (
        family.everything(),
        link_hop(names::INTERNET_LINK, Some(family.operator())),
    );
    let tables = topology.tables.values().flat_map(|table| {
        table_routes(table, &attached, family)
            .into_iter()
            .map(in_table(table.number))
    });
    let rules = attached.iter().map(|host| Rule::From {
        link: host.link.clone(),
        table: names::table_number(host.table),
    });
    let neighbours = attached.iter().flat_map(|host| {
        let addresses = family.instance_addresses(host.instance).into_iter();
        addresses.map(move |address| Neighbour {
            link: host.link.clone(),
            address,
            mac: host.instance.mac.to_lowercase(),
        })
    });
    Routing {
        addresses: router_addresses(topology, family),
        routes: main
            .chain([out])
            .map(in_table(names::MAIN_TABLE))
            .chain(tables)
            .collect(),
        rules: rules.chain([Rule::Public]).collect(),
        neighbours: neighbours.collect(),
    }
}

fn link_hop(name: &str, source: Option<IpAddr>) -> Hop {
    let link = name.to_owned();
    Hop::Link { link, source }
}

/// To a host's own addresses, and by way of the first of them to the ranges of its pods.
fn host_routes(host: &Host<'_>, source: Option<IpAddr>, family: Family) -> Vec<(IpNet, Hop)> {
    let addresses = family.instance_addresses(host.instance);
    let via = addresses.first().map(|address| Hop::Via {
        link: host.link.clone(),
        address: *address,
    });
    let own = addresses
        .iter()
        .map(|address| ((*address).into(), link_hop(&host.link, source)));
    let pods = family.pod_ranges(host.instance).into_iter();
    let pods = pods.filter_map(|range| Some((range, via.clone()?)));
    own.chain(pods).collect()
}

/// A VPC's table: its machines, its routes, and nothing else.
fn table_routes(table: &Table<'_>, attached: &[&Host<'_>], family: Family) -> Vec<(IpNet, Hop)> {
    let near = attached
        .iter()
        .filter(|host| host.instance.vpc == table.vpc);
    let mut hops: Vec<(IpNet, Hop)> = near
        .flat_map(|host| host_routes(host, None, family))
        .collect();
    let mut seen = BTreeSet::new();
    let first = table
        .routes_of(family)
        .filter(|(range, _)| seen.insert(*range));
    hops.extend(first.map(|(range, via)| (range, hop_of(via, attached, family))));
    if !seen.contains(&family.everything()) {
        hops.push((family.everything(), Hop::Blackhole));
    }
    hops
}

/// Unused addresses of a VPC lead nowhere; used ones have routes of their own.
fn hop_of(via: RouteVia<'_>, attached: &[&Host<'_>], family: Family) -> Hop {
    match via {
        RouteVia::InternetGateway | RouteVia::EgressOnlyGateway | RouteVia::NatGateway(_) => {
            link_hop(names::INTERNET_LINK, None)
        }
        RouteVia::Local | RouteVia::Blackhole => Hop::Blackhole,
        RouteVia::Instance(id) => {
            let host = attached.iter().find(|host| host.instance.id == id);
            let reached = host.and_then(|host| {
                Some(Hop::Via {
                    link: host.link.clone(),
                    address: family.reached_address(host.instance)?,
                })
            });
            reached.unwrap_or(Hop::Blackhole)
        }
    }
}

fn router_addresses(topology: &Topology<'_>, family: Family) -> BTreeSet<IpNet> {
    let services = [family.metadata(), family.resolver()].map(IpNet::from);
    match family {
        Family::V4 => {
            let gateways = topology.subnets.values().map(|net| net.gateway);
            let resolvers = topology.vpcs.values().map(|vpc| vpc.resolver);
            let balancers = topology
                .balancers
                .iter()
                .flat_map(|balancer| &balancer.addresses);
            gateways
                .chain(resolvers)
                .chain(balancers.map(|at| at.address))
                .map(|address| IpNet::from(IpAddr::V4(address)))
                // On the loopback device an IPv4 range is an address, every one in it.
                .chain([names::INTERNET.into()])
                .chain(services)
                .collect()
        }
        // Health checks, for which a balancer's address is the router's own, are IPv4's.
        Family::V6 => [names::FRONT_NAT64, names::OPERATOR_V6]
            .map(|address| IpNet::from(IpAddr::V6(address)))
            .into_iter()
            .chain(services)
            .collect(),
    }
}
