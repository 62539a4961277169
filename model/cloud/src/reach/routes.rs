//! Route tables: where packets of a subnet go, to other subnets of the VPC and to the internet.

use engine::Ref;
use ipnet::{IpNet, Ipv4Net};
use std::fmt;

/// What a VPC's own ranges are routed to.
const LOCAL: &str = "local";

/// A route table of a VPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedRouteTable {
    /// `rtb-...`.
    pub id: String,
    /// Subnets without a table of their own have it.
    pub is_main: bool,
    pub subnets: Vec<Ref>,
    pub routes: Vec<ObservedRoute>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedRoute {
    /// A range, or a prefix list.
    pub destination: String,
    /// `local`, `igw-...`, `nat-...`, ...
    pub target: String,
    /// The target is gone.
    pub is_blackhole: bool,
}

/// A subnet of the cluster, and how packets leave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutedSubnet {
    pub subnet: Ref,
    pub range: Option<Ipv4Net>,
    /// Through an internet gateway, with public addresses of their own; else through anything else.
    pub is_public: bool,
    /// kctl makes its routes.
    pub is_routed: bool,
}

/// What is wrong with the routes of a subnet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteProblem {
    pub subnet: Ref,
    /// The route table.
    pub table: String,
    pub what: WrongRoute,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrongRoute {
    /// There is no default route. Certain: it is of kctl's making. Others may do with endpoints of AWS' services and a proxy.
    NoDefault { is_certain: bool },
    /// The target of the default route is gone.
    Blackhole(String),
    /// Packets go to an internet gateway, with private addresses.
    NoTranslation(String),
    /// Packets with public addresses go elsewhere than to an internet gateway. Certain: the target does not pass them on to one.
    NoInternetGateway { target: String, is_certain: bool },
    /// Packets to another subnet of the cluster go elsewhere: the route and its target, and that subnet. Certain: the target does not
    /// pass them on.
    Diverted {
        destination: String,
        target: String,
        to: Ref,
        is_certain: bool,
    },
}

impl fmt::Display for RouteProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = &self.table;
        match &self.what {
            WrongRoute::NoDefault { .. } => write!(f, "{table} has no route to 0.0.0.0/0"),
            WrongRoute::Blackhole(target) => {
                write!(f, "the target of 0.0.0.0/0 in {table}, {target}, is gone")
            }
            WrongRoute::NoTranslation(target) => write!(
                f,
                "{table} sends 0.0.0.0/0 to {target}: instances of a private subnet have no public address"
            ),
            WrongRoute::NoInternetGateway { target, .. } => write!(
                f,
                "{table} sends 0.0.0.0/0 to {target}: public addresses of this subnet work only through an internet gateway"
            ),
            WrongRoute::Diverted {
                destination,
                target,
                to,
                ..
            } => write!(
                f,
                "{table} sends {destination}, in which the subnet {} is, to {target}",
                crate::listing::reference_words(to)
            ),
        }
    }
}

impl RouteProblem {
    /// False if packets may arrive all the same, by what a route table does not show.
    pub fn is_certain(&self) -> bool {
        match &self.what {
            WrongRoute::NoDefault { is_certain }
            | WrongRoute::NoInternetGateway { is_certain, .. }
            | WrongRoute::Diverted { is_certain, .. } => *is_certain,
            WrongRoute::Blackhole(_) | WrongRoute::NoTranslation(_) => true,
        }
    }

    /// Every wrong route of these subnets; `all`: of the cluster, whose packets to each other stay in the VPC.
    pub fn find_all(tables: &[ObservedRouteTable], all: &[RoutedSubnet]) -> Vec<Self> {
        let mut found = Vec::new();
        for subnet in all {
            let own = tables
                .iter()
                .find(|table| table.subnets.contains(&subnet.subnet));
            let main = || tables.iter().find(|table| table.is_main);
            let Some(table) = own.or_else(main) else {
                continue;
            };
            let mut add = |what| {
                found.push(Self {
                    subnet: subnet.subnet.clone(),
                    table: table.id.clone(),
                    what,
                });
            };
            let others = all.iter().filter(|other| other.subnet != subnet.subnet);
            others
                .filter_map(|other| table.find_diversion(other))
                .for_each(&mut add);
            if subnet.range.is_some() {
                table.find_wrong_default(subnet).into_iter().for_each(add);
            }
        }
        found
    }
}

impl ObservedRoute {
    /// True for targets that send packets out of the VPC. Others may be machines that look at packets and pass them on.
    fn leaves_vpc(&self) -> bool {
        self.target.starts_with("igw-") || self.target.starts_with("nat-")
    }
}

impl ObservedRouteTable {
    fn find_wrong_default(&self, of: &RoutedSubnet) -> Option<WrongRoute> {
        let mut routes = self.routes.iter();
        let Some(route) = routes.find(|route| route.destination == "0.0.0.0/0") else {
            return Some(WrongRoute::NoDefault {
                is_certain: of.is_routed,
            });
        };
        let target = route.target.clone();
        let is_gateway = target.starts_with("igw-");
        match (of.is_public, is_gateway) {
            _ if route.is_blackhole => Some(WrongRoute::Blackhole(target)),
            (true, false) => Some(WrongRoute::NoInternetGateway {
                target,
                is_certain: route.leaves_vpc(),
            }),
            (false, true) => Some(WrongRoute::NoTranslation(target)),
            (true, true) | (false, false) => None,
        }
    }

    /// A route that takes packets to a subnet, or to a part of it, away from the VPC: the narrowest route wins
    /// (<https://docs.aws.amazon.com/vpc/latest/userguide/VPC_Route_Tables.html>).
    fn find_diversion(&self, to: &RoutedSubnet) -> Option<WrongRoute> {
        let range = IpNet::V4(to.range?);
        let parsed = self.routes.iter().filter_map(|route| {
            let destination: IpNet = route.destination.parse().ok()?;
            Some((destination, route))
        });
        let parsed: Vec<(IpNet, &ObservedRoute)> = parsed.collect();
        let local = parsed
            .iter()
            .filter(|(destination, route)| route.target == LOCAL && destination.contains(&range));
        let local = local
            .map(|(destination, _)| destination.prefix_len())
            .max()?;
        let diverts = |(destination, route): &&(IpNet, &ObservedRoute)| {
            let wider = destination.contains(&range) && destination.prefix_len() >= local;
            route.target != LOCAL && (wider || range.contains(destination))
        };
        let (_, route) = parsed.iter().find(diverts)?;
        Some(WrongRoute::Diverted {
            destination: route.destination.clone(),
            target: route.target.clone(),
            to: to.subnet.clone(),
            is_certain: route.is_blackhole || route.leaves_vpc(),
        })
    }
}
