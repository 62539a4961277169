//! What the router's namespace should hold (addresses, routes, rules, neighbours), what it holds, and the `ip` commands
//! between the two. Pure but for [`observe`].

use super::error::{Error, Result};
use super::topology::{Host, Topology, Via};
use super::{names, netns};
use ipnet::Ipv4Net;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt;
use std::net::Ipv4Addr;

/// The router's state; both the wished and the found one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Routing {
    /// Of the loopback device: whatever the router itself answers for.
    pub addresses: BTreeSet<Ipv4Net>,
    pub routes: BTreeSet<Route>,
    pub rules: BTreeSet<Rule>,
    pub neighbours: BTreeSet<Neighbour>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    pub table: u32,
    pub destination: Ipv4Net,
    pub hop: Hop,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hop {
    Link {
        link: String,
        source: Option<Ipv4Addr>,
    },
    Via {
        link: String,
        address: Ipv4Addr,
    },
    Blackhole,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Packets that came by a link.
    From { link: String, table: u32 },
    /// Packets of public connections.
    Public,
}

/// Known beforehand, so that no host is asked for its hardware address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Neighbour {
    pub link: String,
    pub address: Ipv4Addr,
    pub mac: String,
}

/// From the world; routes only over `links`, the ones that exist.
pub fn desired(topology: &Topology<'_>, links: &BTreeSet<String>) -> Routing {
    let attached: Vec<_> = topology
        .hosts
        .iter()
        .filter(|host| links.contains(&host.link))
        .collect();
    let mut routing = Routing {
        addresses: addresses(topology),
        ..Routing::default()
    };
    routing.rules.insert(Rule::Public);
    let internet = |source| Hop::Link {
        link: names::INTERNET_LINK.to_owned(),
        source,
    };
    let everywhere = Ipv4Net::default();
    routing.routes.insert(Route {
        table: names::MAIN_TABLE,
        destination: everywhere,
        hop: internet(Some(names::OPERATOR)),
    });
    for host in &attached {
        let hop = Hop::Link {
            link: host.link.clone(),
            source: Some(host.gateway),
        };
        routing.routes.insert(Route {
            table: names::MAIN_TABLE,
            destination: host.instance.address.into(),
            hop,
        });
        let link = host.link.clone();
        let table = names::table(host.table);
        routing.rules.insert(Rule::From {
            link: link.clone(),
            table,
        });
        let address = host.instance.address;
        routing.neighbours.insert(Neighbour {
            link,
            address,
            mac: host.instance.mac.to_lowercase(),
        });
    }
    for table in topology.tables.values() {
        let mut put = |destination, hop| {
            routing.routes.insert(Route {
                table: table.number,
                destination,
                hop,
            })
        };
        for host in attached
            .iter()
            .filter(|host| host.instance.vpc == table.vpc)
        {
            put(
                host.instance.address.into(),
                Hop::Link {
                    link: host.link.clone(),
                    source: None,
                },
            );
        }
        let mut seen = BTreeSet::new();
        for (range, via) in table.routes.iter().filter(|(range, _)| seen.insert(*range)) {
            put(
                *range,
                hop(*via, &attached).unwrap_or_else(|| internet(None)),
            );
        }
        if !seen.contains(&everywhere) {
            put(everywhere, Hop::Blackhole);
        }
    }
    routing
}

/// `None`: to the internet. Unused addresses of a VPC lead nowhere; used ones have routes of their own.
fn hop(via: Via<'_>, attached: &[&Host<'_>]) -> Option<Hop> {
    match via {
        Via::InternetGateway | Via::NatGateway(_) => None,
        Via::Local | Via::Blackhole => Some(Hop::Blackhole),
        Via::Instance(id) => {
            let host = attached.iter().find(|host| host.instance.id == id);
            Some(host.map_or(Hop::Blackhole, |host| Hop::Via {
                link: host.link.clone(),
                address: host.instance.address,
            }))
        }
    }
}

fn addresses(topology: &Topology<'_>) -> BTreeSet<Ipv4Net> {
    let front = Ipv4Net::new(names::FRONT, names::INTERNET_BITS)
        .map_or_else(|_| names::FRONT.into(), |range| range);
    let fixed = [front, names::METADATA.into(), names::RESOLVER.into()];
    let gateways = topology.subnets.values().map(|net| net.gateway.into());
    let resolvers = topology.vpcs.values().map(|vpc| vpc.resolver.into());
    let balancers = topology
        .balancers
        .iter()
        .flat_map(|balancer| &balancer.addresses)
        .map(|at| at.address.into());
    fixed
        .into_iter()
        .chain(gateways)
        .chain(resolvers)
        .chain(balancers)
        .collect()
}

/// The lines for `ip -batch` that lead from one state to the other, additions first; none when they are equal.
pub fn plan(from: &Routing, to: &Routing) -> Vec<String> {
    let mut lines = Vec::new();
    let added = |kind: &str, item: &dyn fmt::Display| format!("{kind} {item}");
    lines.extend(
        to.addresses
            .difference(&from.addresses)
            .map(|a| format!("address add {a} dev lo")),
    );
    lines.extend(to.neighbours.difference(&from.neighbours).map(|n| {
        format!(
            "neighbour replace {} lladdr {} dev {} nud permanent",
            n.address, n.mac, n.link
        )
    }));
    lines.extend(
        to.routes
            .difference(&from.routes)
            .map(|r| added("route replace", r)),
    );
    lines.extend(
        to.rules
            .difference(&from.rules)
            .map(|r| added("rule add", r)),
    );
    lines.extend(
        from.rules
            .difference(&to.rules)
            .map(|r| added("rule delete", r)),
    );
    // A route that was replaced has the key of the new one and is gone already.
    let keys: BTreeSet<_> = to
        .routes
        .iter()
        .map(|route| (route.table, route.destination))
        .collect();
    let stale = |route: &&Route| !keys.contains(&(route.table, route.destination));
    lines.extend(
        from.routes
            .iter()
            .filter(stale)
            .map(|r| added("route delete", r)),
    );
    let keys: BTreeSet<_> = to.neighbours.iter().map(|n| (&n.link, n.address)).collect();
    let stale = |n: &&Neighbour| !keys.contains(&(&n.link, n.address));
    lines.extend(
        from.neighbours
            .iter()
            .filter(stale)
            .map(|n| format!("neighbour delete {} dev {}", n.address, n.link)),
    );
    lines.extend(
        from.addresses
            .difference(&to.addresses)
            .map(|a| format!("address delete {a} dev lo")),
    );
    lines
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            table,
            destination,
            hop,
        } = self;
        match hop {
            Hop::Blackhole => write!(f, "blackhole {destination} table {table}"),
            Hop::Via { link, address } => write!(
                f,
                "{destination} via {address} dev {link} onlink table {table}"
            ),
            Hop::Link { link, source: None } => {
                write!(f, "{destination} dev {link} scope link table {table}")
            }
            Hop::Link {
                link,
                source: Some(source),
            } => write!(
                f,
                "{destination} dev {link} scope link src {source} table {table}"
            ),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Public => write!(
                f,
                "priority 900 fwmark {:#x} lookup {}",
                names::PUBLIC_MARK,
                names::MAIN_TABLE
            ),
            Self::From { link, table } => write!(f, "priority 1000 iif {link} lookup {table}"),
        }
    }
}

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
    local: Ipv4Addr,
    prefixlen: u8,
}
#[derive(Deserialize)]
struct RouteLine {
    #[serde(rename = "type")]
    kind: Option<String>,
    dst: String,
    table: Option<String>,
    dev: Option<String>,
    gateway: Option<Ipv4Addr>,
    prefsrc: Option<Ipv4Addr>,
}
#[derive(Deserialize)]
struct RuleLine {
    priority: u32,
    iif: Option<String>,
    table: String,
}
#[derive(Deserialize)]
struct NeighbourLine {
    dst: Ipv4Addr,
    dev: String,
    lladdr: Option<String>,
}

/// The links and the state of a router's namespace.
pub fn observe(netns: &str) -> Result<(BTreeSet<String>, Routing)> {
    let links: Vec<LinkLine> = netns::ip_json(netns, &["link", "show"])?;
    let addresses: Vec<AddressLine> = netns::ip_json(netns, &["address", "show", "dev", "lo"])?;
    let routes: Vec<RouteLine> = netns::ip_json(netns, &["route", "show", "table", "all"])?;
    let rules: Vec<RuleLine> = netns::ip_json(netns, &["rule", "show"])?;
    let neighbours: Vec<NeighbourLine> =
        netns::ip_json(netns, &["neighbour", "show", "nud", "permanent"])?;
    let own = addresses
        .into_iter()
        .flat_map(|line| line.addr_info)
        .filter(|info| !info.local.is_loopback());
    let addresses = own
        .filter_map(|info| Ipv4Net::new(info.local, info.prefixlen).ok())
        .collect();
    let mut routing = Routing {
        addresses,
        ..Routing::default()
    };
    for line in routes {
        routing.routes.extend(route(netns, line)?);
    }
    routing.rules = rules.into_iter().filter_map(rule).collect();
    let known = |line: NeighbourLine| {
        Some(Neighbour {
            link: line.dev,
            address: line.dst,
            mac: line.lladdr?,
        })
    };
    routing.neighbours = neighbours.into_iter().filter_map(known).collect();
    Ok((links.into_iter().map(|line| line.ifname).collect(), routing))
}

fn route(netns: &str, line: RouteLine) -> Result<Option<Route>> {
    let table = match line.table.as_deref() {
        None | Some("main") => Some(names::MAIN_TABLE),
        Some(number) => number
            .parse()
            .ok()
            .filter(|number| names::is_vpc_table(*number)),
    };
    let Some(table) = table else { return Ok(None) };
    let destination = match line.dst.as_str() {
        "default" => Ok(Ipv4Net::default()),
        text if text.contains('/') => text.parse().map_err(|_| text),
        text => text
            .parse::<Ipv4Addr>()
            .map(Ipv4Net::from)
            .map_err(|_| text),
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

fn rule(line: RuleLine) -> Option<Rule> {
    match line.priority {
        900 => Some(Rule::Public),
        1000 => Some(Rule::From {
            link: line.iif?,
            table: line.table.parse().ok()?,
        }),
        _ => None,
    }
}
