//! What the router's namespace should hold (addresses, routes, rules, neighbours), what it holds, and the `ip` commands
//! between the two.

mod desired;
mod observed;

pub use desired::desired_routing;
pub use observed::{observe_links, observe_routing};

use super::names;
use ipnet::IpNet;
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

/// The router's state in one family; both the wished and the found one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Routing {
    /// Of the loopback device: whatever the router itself answers for.
    pub addresses: BTreeSet<IpNet>,
    pub routes: BTreeSet<Route>,
    pub rules: BTreeSet<Rule>,
    pub neighbours: BTreeSet<Neighbour>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    pub table: u32,
    pub destination: IpNet,
    pub hop: Hop,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hop {
    Link {
        link: String,
        source: Option<IpAddr>,
    },
    Via {
        link: String,
        address: IpAddr,
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
    pub address: IpAddr,
    pub mac: String,
}

/// The lines for `ip -batch` that lead from one state to the other, additions first; none when they are equal.
pub fn plan_changes(from: &Routing, to: &Routing) -> Vec<String> {
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
