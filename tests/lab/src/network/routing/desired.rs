//! The router's state as it follows from the world.

use super::super::names;
use super::super::topology::{Host, RouteVia, Table, Topology};
use super::{Hop, Neighbour, Route, Routing, Rule};
use ipnet::Ipv4Net;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// From the world; routes only over `links`, the ones that exist.
pub fn desired_routing(topology: &Topology<'_>, links: &BTreeSet<String>) -> Routing {
    let hosts = topology.hosts.iter();
    let attached: Vec<_> = hosts.filter(|host| links.contains(&host.link)).collect();
    let main = attached.iter().map(|host| Route {
        table: names::MAIN_TABLE,
        destination: host.instance.address.into(),
        hop: link_hop(&host.link, Some(host.gateway)),
    });
    let out = Route {
        table: names::MAIN_TABLE,
        destination: Ipv4Net::default(),
        hop: link_hop(names::INTERNET_LINK, Some(names::OPERATOR)),
    };
    let tables = topology.tables.values();
    let rules = attached.iter().map(|host| Rule::From {
        link: host.link.clone(),
        table: names::table_number(host.table),
    });
    let neighbours = attached.iter().map(|host| Neighbour {
        link: host.link.clone(),
        address: host.instance.address,
        mac: host.instance.mac.to_lowercase(),
    });
    Routing {
        addresses: router_addresses(topology),
        routes: tables
            .flat_map(|table| table_routes(table, &attached))
            .chain(main)
            .chain([out])
            .collect(),
        rules: rules.chain([Rule::Public]).collect(),
        neighbours: neighbours.collect(),
    }
}

fn link_hop(name: &str, source: Option<Ipv4Addr>) -> Hop {
    let link = name.to_owned();
    Hop::Link { link, source }
}

/// A VPC's table: its machines, its routes, and nothing else.
fn table_routes(table: &Table<'_>, attached: &[&Host<'_>]) -> Vec<Route> {
    let near = attached
        .iter()
        .filter(|host| host.instance.vpc == table.vpc);
    let mut hops: Vec<(Ipv4Net, Hop)> = near
        .map(|host| (host.instance.address.into(), link_hop(&host.link, None)))
        .collect();
    let mut seen = BTreeSet::new();
    let first = table.routes.iter().filter(|(range, _)| seen.insert(*range));
    hops.extend(first.map(|(range, via)| (*range, hop_of(*via, attached))));
    if !seen.contains(&Ipv4Net::default()) {
        hops.push((Ipv4Net::default(), Hop::Blackhole));
    }
    let route = |(destination, hop)| Route {
        table: table.number,
        destination,
        hop,
    };
    hops.into_iter().map(route).collect()
}

/// Unused addresses of a VPC lead nowhere; used ones have routes of their own.
fn hop_of(via: RouteVia<'_>, attached: &[&Host<'_>]) -> Hop {
    match via {
        RouteVia::InternetGateway | RouteVia::NatGateway(_) => link_hop(names::INTERNET_LINK, None),
        RouteVia::Local | RouteVia::Blackhole => Hop::Blackhole,
        RouteVia::Instance(id) => {
            let host = attached.iter().find(|host| host.instance.id == id);
            host.map_or(Hop::Blackhole, |host| Hop::Via {
                link: host.link.clone(),
                address: host.instance.address,
            })
        }
    }
}

fn router_addresses(topology: &Topology<'_>) -> BTreeSet<Ipv4Net> {
    // On the loopback device a range is an address, every one in it.
    let fixed = [
        names::INTERNET,
        names::METADATA.into(),
        names::RESOLVER.into(),
    ];
    let gateways = topology.subnets.values().map(|net| net.gateway.into());
    let resolvers = topology.vpcs.values().map(|vpc| vpc.resolver.into());
    let balancers = topology
        .balancers
        .iter()
        .flat_map(|balancer| &balancer.addresses);
    fixed
        .into_iter()
        .chain(gateways)
        .chain(resolvers)
        .chain(balancers.map(|at| at.address.into()))
        .collect()
}
