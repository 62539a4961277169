//! The router's state as `ip -j` shows it.

use super::super::error::{Error, Result};
use super::super::family::Family;
use super::super::{names, netns};
use super::{Hop, Neighbour, Route, Routing, Rule};
use ipnet::IpNet;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// What `ip -j` says of them; other fields do not matter.
#[derive(Deserialize)]
struct LinkLine {
    ifname: String,
}
#[derive(Deserialize)]
struct AddressLine {
    #[serde(default)]
    addr_info: Vec<AddressInfo>,
}
#[derive(Deserialize)]
struct AddressInfo {
    local: IpAddr,
    prefixlen: u8,
}
#[derive(Deserialize)]
struct RouteLine {
    #[serde(rename = "type")]
    kind: Option<String>,
    dst: String,
    /// `kernel`: of an address, not ours.
    protocol: Option<String>,
    table: Option<String>,
    dev: Option<String>,
    gateway: Option<IpAddr>,
    prefsrc: Option<IpAddr>,
}
#[derive(Deserialize)]
struct RuleLine {
    priority: u32,
    iif: Option<String>,
    table: String,
}
#[derive(Deserialize)]
struct NeighbourLine {
    dst: IpAddr,
    dev: String,
    lladdr: Option<String>,
}

/// The links of a router's namespace.
pub fn observe_links(netns: &str) -> Result<BTreeSet<String>> {
    let links: Vec<LinkLine> = netns::ip_json(netns, Family::V4, &["link", "show"])?;
    Ok(links.into_iter().map(|line| line.ifname).collect())
}

/// The state of a router's namespace in one family.
pub fn observe_routing(netns: &str, family: Family) -> Result<Routing> {
    let addresses: Vec<AddressLine> =
        netns::ip_json(netns, family, &["address", "show", "dev", "lo"])?;
    let routes: Vec<RouteLine> = netns::ip_json(netns, family, &["route", "show", "table", "all"])?;
    let rules: Vec<RuleLine> = netns::ip_json(netns, family, &["rule", "show"])?;
    let neighbours: Vec<NeighbourLine> =
        netns::ip_json(netns, family, &["neighbour", "show", "nud", "permanent"])?;
    let own = addresses
        .into_iter()
        .flat_map(|line| line.addr_info)
        .filter(|info| !info.local.is_loopback());
    let addresses = own
        .filter_map(|info| IpNet::new(info.local, info.prefixlen).ok())
        .collect();
    let mut routing = Routing {
        addresses,
        ..Routing::default()
    };
    let ours = |line: &RouteLine| line.protocol.as_deref() != Some("kernel");
    for line in routes.into_iter().filter(ours) {
        routing.routes.extend(parse_route(netns, family, line)?);
    }
    routing.rules = rules.into_iter().filter_map(parse_rule).collect();
    let known = |line: NeighbourLine| {
        Some(Neighbour {
            link: line.dev,
            address: line.dst,
            mac: line.lladdr?,
        })
    };
    routing.neighbours = neighbours.into_iter().filter_map(known).collect();
    Ok(routing)
}

fn parse_route(netns: &str, family: Family, line: RouteLine) -> Result<Option<Route>> {
    let table = match line.table.as_deref() {
        None | Some("main") => Some(names::MAIN_TABLE),
        Some(number) => number
            .parse()
            .ok()
            .filter(|number| names::is_vpc_table(*number)),
    };
    let Some(table) = table else { return Ok(None) };
    let destination = match line.dst.as_str() {
        "default" => Ok(family.everything()),
        text if text.contains('/') => text.parse().map_err(|_| text),
        text => text.parse::<IpAddr>().map(IpNet::from).map_err(|_| text),
    };
    let destination = destination.map_err(|text| Error::Answer {
        command: "ip -j route show table all".to_owned(),
        netns: netns.to_owned(),
        problem: format!("destination {text:?}"),
    })?;
    let hop = match (line.kind.as_deref(), line.dev, line.gateway) {
        (Some("blackhole"), _, _) => Hop::Blackhole,
        (_, Some(link), Some(address)) => Hop::Via { link, address },
        (_, Some(link), None) => Hop::Link {
            link,
            source: line.prefsrc,
        },
        (_, None, _) => return Ok(None),
    };
    Ok(Some(Route {
        table,
        destination,
        hop,
    }))
}

fn parse_rule(line: RuleLine) -> Option<Rule> {
    match line.priority {
        900 => Some(Rule::Public),
        1000 => Some(Rule::From {
            link: line.iif?,
            table: line.table.parse().ok()?,
        }),
        _ => None,
    }
}
