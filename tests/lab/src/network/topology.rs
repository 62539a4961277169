//! The world's network, read once: ranges parsed, routes resolved to what they lead to, machines that have an address.

use super::error::{Error, Result};
use super::family::Family;
use super::names;
use crate::aws_state::{AwsState, Instance, InstanceState, LoadBalancer, NatGateway, Subnet};
use ipnet::{IpNet, Ipv4Net};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// Everything the router needs to know, borrowed from one world.
#[derive(Debug)]
pub struct Topology<'a> {
    pub world: &'a AwsState,
    pub vpcs: BTreeMap<&'a str, Vpc>,
    pub subnets: BTreeMap<&'a str, SubnetNet<'a>>,
    pub tables: BTreeMap<&'a str, Table<'a>>,
    pub hosts: Vec<Host<'a>>,
    /// Active ones; the others have no address yet.
    pub balancers: Vec<&'a LoadBalancer>,
    /// What of the world the lab does not do.
    pub warnings: Vec<String>,
}

#[derive(Debug)]
pub struct Vpc {
    pub ranges: Vec<IpNet>,
    /// The first IPv4 range's base + 2.
    pub resolver: Ipv4Addr,
}

#[derive(Debug)]
pub struct SubnetNet<'a> {
    pub subnet: &'a Subnet,
    /// The IPv4 range; without one that of link-local addresses.
    pub range: Ipv4Net,
    /// The range's base + 1.
    pub gateway: Ipv4Addr,
}

/// A VPC's route table, the longest prefix first.
#[derive(Debug)]
pub struct Table<'a> {
    pub vpc: &'a str,
    pub number: u32,
    pub routes: Vec<(IpNet, RouteVia<'a>)>,
}

impl<'a> Table<'a> {
    /// The routes of one family.
    pub fn routes_of(&self, family: Family) -> impl Iterator<Item = (IpNet, RouteVia<'a>)> {
        let routes = self.routes.iter().copied();
        routes.filter(move |(range, _)| Family::of_range(*range) == family)
    }
}

/// What a route leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteVia<'a> {
    Local,
    Instance(&'a str),
    InternetGateway,
    EgressOnlyGateway,
    /// With the public address that the world sees.
    NatGateway(Ipv4Addr),
    Blackhole,
}

/// A machine with an address.
#[derive(Debug)]
pub struct Host<'a> {
    pub instance: &'a Instance,
    /// The router's end of its link.
    pub link: String,
    pub gateway: Ipv4Addr,
    /// Id of its subnet's route table.
    pub table: &'a str,
}

impl<'a> Topology<'a> {
    /// Fails on what no VPC can be: a range that is none, a subnet without a VPC, VPCs in use that overlap.
    pub fn from_world(world: &'a AwsState) -> Result<Self> {
        let mut warnings = Vec::new();
        let vpcs = collect_vpcs(world)?;
        let subnets = collect_subnets(world)?;
        let hosts = collect_hosts(world, &subnets)?;
        let active = |balancer: &&LoadBalancer| balancer.state == "active";
        let balancers: Vec<_> = world.load_balancers.iter().filter(active).collect();
        refuse_overlap(&vpcs, &hosts, &balancers)?;
        for (balancer, listener) in balancers
            .iter()
            .flat_map(|b| b.listeners.iter().map(move |l| (b, l)))
        {
            if super::balancing::transport_protocols(&listener.protocol).is_empty() {
                warnings.push(format!(
                    "{}: listener {} {}: the lab balances TCP and UDP only",
                    balancer.arn, listener.protocol, listener.port
                ));
            }
        }
        let tables = collect_tables(world, &vpcs, &subnets, &mut warnings)?;
        Ok(Self {
            world,
            vpcs,
            subnets,
            tables,
            hosts,
            balancers,
            warnings,
        })
    }

    /// Where packets to `address` go from a subnet with that route table.
    pub fn route_of(&self, table: &str, address: IpAddr) -> RouteVia<'a> {
        let routes = self
            .tables
            .get(table)
            .map_or(&[][..], |table| &table.routes);
        longest_match(routes, address)
    }

    /// Whether what lives in the subnet can be reached from the internet.
    pub fn is_public(&self, subnet: &str, family: Family) -> bool {
        let table = self
            .subnets
            .get(subnet)
            .map(|net| net.subnet.route_table.as_str());
        table.is_some_and(|table| {
            self.route_of(table, family.operator()) == RouteVia::InternetGateway
        })
    }

    pub fn find_host(&self, instance: &str) -> Option<&Host<'a>> {
        self.hosts.iter().find(|host| host.instance.id == instance)
    }
}

fn longest_match<'a>(longest_first: &[(IpNet, RouteVia<'a>)], address: IpAddr) -> RouteVia<'a> {
    let mut matching = longest_first
        .iter()
        .filter(|(range, _)| range.contains(&address));
    matching.next().map_or(RouteVia::Blackhole, |(_, via)| *via)
}

/// `None` for prefix lists, which the lab does not have.
pub fn parse_range(owner: &str, value: &str) -> Result<Option<IpNet>> {
    if value.starts_with("pl-") {
        return Ok(None);
    }
    let parsed: IpNet = value.parse().map_err(|_| Error::Range {
        owner: owner.to_owned(),
        value: value.to_owned(),
    })?;
    Ok(Some(parsed.trunc()))
}

/// The `index`th address of a range, counted from its base.
fn nth_address(range: Ipv4Net, index: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(range.network()).saturating_add(index))
}

fn collect_vpcs(world: &AwsState) -> Result<BTreeMap<&str, Vpc>> {
    let mut vpcs = BTreeMap::new();
    for vpc in &world.vpcs {
        let mut ranges = Vec::new();
        for value in &vpc.cidrs {
            ranges.extend(parse_range(&vpc.id, value)?);
        }
        let first = ranges.iter().find_map(|range| match range {
            IpNet::V4(range) => Some(*range),
            IpNet::V6(_) => None,
        });
        let first = first.ok_or_else(|| Error::Missing {
            owner: vpc.id.clone(),
            missing: "an IPv4 range".to_owned(),
        })?;
        let resolver = nth_address(first, 2);
        vpcs.insert(vpc.id.as_str(), Vpc { ranges, resolver });
    }
    Ok(vpcs)
}

fn collect_subnets(world: &AwsState) -> Result<BTreeMap<&str, SubnetNet<'_>>> {
    let mut subnets = BTreeMap::new();
    for subnet in &world.subnets {
        let cidr = subnet.cidr.as_deref();
        let range = match cidr.map(|cidr| parse_range(&subnet.id, cidr)).transpose()? {
            Some(Some(IpNet::V4(range))) => range,
            _ => names::LINK_LOCAL,
        };
        let gateway = nth_address(range, 1);
        subnets.insert(
            subnet.id.as_str(),
            SubnetNet {
                subnet,
                range,
                gateway,
            },
        );
    }
    Ok(subnets)
}

fn collect_hosts<'a>(
    world: &'a AwsState,
    subnets: &BTreeMap<&'a str, SubnetNet<'a>>,
) -> Result<Vec<Host<'a>>> {
    let gone = |state| matches!(state, InstanceState::Terminated | InstanceState::Stopped);
    let alive = world
        .instances
        .iter()
        .filter(|instance| !gone(instance.state));
    let mut hosts = alive
        .map(|instance| {
            let net = subnets
                .get(instance.subnet.as_str())
                .ok_or_else(|| Error::Missing {
                    owner: instance.id.clone(),
                    missing: instance.subnet.clone(),
                })?;
            Ok(Host {
                instance,
                link: names::link_name(&instance.id),
                gateway: net.gateway,
                table: &net.subnet.route_table,
            })
        })
        .collect::<Result<Vec<_>>>()?;
    hosts.sort_by(|one, other| one.instance.id.cmp(&other.instance.id));
    Ok(hosts)
}

/// AWS allows equal ranges; one router cannot tell their machines apart.
fn refuse_overlap(
    vpcs: &BTreeMap<&str, Vpc>,
    hosts: &[Host<'_>],
    balancers: &[&LoadBalancer],
) -> Result<()> {
    let used = |id: &str| {
        hosts.iter().any(|host| host.instance.vpc == id)
            || balancers.iter().any(|balancer| balancer.vpc == id)
    };
    let ranges: Vec<_> = vpcs
        .iter()
        .filter(|(id, _)| used(id))
        .flat_map(|(id, vpc)| vpc.ranges.iter().map(move |range| (*id, range)))
        .collect();
    for (index, (one, range)) in ranges.iter().enumerate() {
        for (other, theirs) in ranges.iter().skip(index + 1) {
            if one != other && (range.contains(*theirs) || theirs.contains(*range)) {
                return Err(Error::Overlap {
                    one: (*one).to_owned(),
                    other: (*other).to_owned(),
                    range: range.to_string(),
                });
            }
        }
    }
    Ok(())
}

fn collect_tables<'a>(
    world: &'a AwsState,
    vpcs: &BTreeMap<&'a str, Vpc>,
    subnets: &BTreeMap<&'a str, SubnetNet<'a>>,
    warnings: &mut Vec<String>,
) -> Result<BTreeMap<&'a str, Table<'a>>> {
    let mut tables = BTreeMap::new();
    // Routes by NAT gateway depend on the gateway's own subnet's routes, so first all without them.
    for with_nat in [false, true] {
        let nat = |gateway: &NatGateway| {
            let table = subnets
                .get(gateway.subnet.as_str())
                .and_then(|net| tables.get(net.subnet.route_table.as_str()));
            let out = |table: &Table<'_>| {
                longest_match(&table.routes, names::OPERATOR.into()) == RouteVia::InternetGateway
            };
            let live = with_nat && gateway.state == "available" && table.is_some_and(out);
            gateway.public_address.filter(|_| live)
        };
        let mut pass = BTreeMap::new();
        for table in &world.route_tables {
            let mut routes: Vec<_> = vpcs
                .get(table.vpc.as_str())
                .map_or(&[][..], |vpc| &vpc.ranges)
                .iter()
                .map(|range| (*range, RouteVia::Local))
                .collect();
            for route in &table.routes {
                let Some(destination) = parse_range(&table.id, &route.destination)? else {
                    continue;
                };
                if route.target != "local" {
                    let via = resolve_route(world, &table.vpc, route, &nat);
                    routes.push((destination, via.unwrap_or(RouteVia::Blackhole)));
                    if via.is_none() && !with_nat {
                        warnings.push(format!(
                            "{}: {} by {}: the lab has no such gateway",
                            table.id, destination, route.target
                        ));
                    }
                }
            }
            routes.sort_by_key(|(range, _)| (std::cmp::Reverse(range.prefix_len()), *range));
            let number = names::table_number(&table.id);
            pass.insert(
                table.id.as_str(),
                Table {
                    vpc: &table.vpc,
                    number,
                    routes,
                },
            );
        }
        tables = pass;
    }
    Ok(tables)
}

/// `None`: a kind of target that the lab does not have.
fn resolve_route<'a>(
    world: &'a AwsState,
    vpc: &str,
    route: &'a crate::aws_state::Route,
    nat: &dyn Fn(&NatGateway) -> Option<Ipv4Addr>,
) -> Option<RouteVia<'a>> {
    if route.blackhole {
        return Some(RouteVia::Blackhole);
    }
    let target = route.target.as_str();
    let kind = target.split('-').next().unwrap_or(target);
    match kind {
        "igw" => {
            let attached = |gateway: &crate::aws_state::InternetGateway| {
                gateway.id == target && gateway.vpc.as_deref() == Some(vpc)
            };
            let live = world.internet_gateways.iter().any(attached);
            Some(if live {
                RouteVia::InternetGateway
            } else {
                RouteVia::Blackhole
            })
        }
        "eigw" => {
            let mut gateways = world.egress_only_gateways.iter();
            let live =
                gateways.any(|gateway| gateway.id == target && gateway.vpc.as_deref() == Some(vpc));
            Some(if live {
                RouteVia::EgressOnlyGateway
            } else {
                RouteVia::Blackhole
            })
        }
        "nat" => {
            let gateway = world
                .nat_gateways
                .iter()
                .find(|gateway| gateway.id == target);
            Some(
                gateway
                    .and_then(nat)
                    .map_or(RouteVia::Blackhole, RouteVia::NatGateway),
            )
        }
        "i" | "eni" => {
            let id = route
                .instance
                .as_deref()
                .or((kind == "i").then_some(target));
            let alive = |instance: &&Instance| {
                instance.state == InstanceState::Running || instance.state == InstanceState::Pending
            };
            let found = world
                .instances
                .iter()
                .filter(alive)
                .find(|instance| Some(instance.id.as_str()) == id && instance.vpc == vpc);
            Some(found.map_or(RouteVia::Blackhole, |instance| {
                RouteVia::Instance(&instance.id)
            }))
        }
        _ => None,
    }
}
