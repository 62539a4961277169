//! Route tables, routes, NAT gateways, and the VPC endpoint for S3. Only the cluster's own subnets whose
//! egress is not `External` are routed.

use crate::{FullSpec, Subnet, SubnetType, cluster_tags};
use cloud::{
    Cloud, EgressOnlyInternetGateway, Eip, InternetGateway, NatGateway, Route, RouteTable,
    RouteTableAssociation, RouteTarget, VpcEndpoint,
};
use engine::Ref;
use node::names;
use std::collections::BTreeMap;

/// Destinations of the default routes, IPv4 and IPv6.
const EVERYWHERE: &str = "0.0.0.0/0";
const EVERYWHERE_V6: &str = "::/0";
/// Destinations that DNS64 makes of IPv4 addresses. A NAT gateway translates what is sent there.
const NAT64: &str = "64:ff9b::/96";

pub(super) fn build_routing(full: &FullSpec) -> Vec<Cloud> {
    let mut all = public_routing(full);
    let mut zones: BTreeMap<&str, Vec<&Subnet>> = BTreeMap::new();
    for subnet in routed_subnets(full).filter(|one| uses_nat(full, one)) {
        zones.entry(&subnet.zone).or_default().push(subnet);
    }
    for (zone, subnets) in &zones {
        all.extend(nat_routing(full, zone, subnets));
    }
    let behind_own_nat = zones
        .iter()
        .filter(|(_, subnets)| subnets.iter().any(|one| one.kind.is_private()))
        .filter(|(_, subnets)| subnets.iter().all(|one| one.egress.is_none()))
        .map(|(zone, _)| names::private_route_table(&full.name, zone));
    all.extend(s3_endpoint(full, behind_own_nat));
    all
}

/// True for private subnets, and in IPv6 clusters for public ones with IPv6: instances there reach IPv4 addresses by NAT64.
fn uses_nat(full: &FullSpec, subnet: &Subnet) -> bool {
    let public = subnet.kind == SubnetType::Public && subnet.ipv6_cidr.is_some();
    subnet.kind.is_private() || (full.is_ipv6() && public)
}

/// A gateway endpoint that takes S3 traffic off the NAT gateways of these route tables. It exists only in the cluster's own VPC,
/// and only for tables with the cluster's own NAT gateway and address: bucket policies of the user may depend on another egress or
/// address, which S3 does not see behind an endpoint. The service has this name in China too.
fn s3_endpoint(full: &FullSpec, tables: impl Iterator<Item = String>) -> Option<Cloud> {
    let tables = super::sort_unique(tables.map(super::own_ref::<RouteTable>));
    if full.network.shared_vpc.is_some() || tables.is_empty() {
        return None;
    }
    let name = format!("s3.{}", full.name);
    let endpoint = VpcEndpoint {
        vpc_id: super::vpc_ref(full),
        service_name: format!("com.amazonaws.{}.s3", full.placement.region),
        vpc_endpoint_type: VpcEndpoint::GATEWAY.to_owned(),
        route_table_ids: tables,
        tags: cluster_tags(full, &name),
        name,
    };
    Some(endpoint.into())
}

/// True if the cluster routes any subnet, shared ones included.
pub(super) fn any_managed(full: &FullSpec) -> bool {
    full.network.subnets.iter().any(is_managed)
}

fn is_managed(subnet: &Subnet) -> bool {
    subnet.egress.as_deref() != Some("External")
}

pub(super) fn routed_subnets(full: &FullSpec) -> impl Iterator<Item = &Subnet> {
    let is_routed = |one: &&Subnet| one.shared.is_none() && is_managed(one);
    full.network.subnets.iter().filter(is_routed)
}

/// True if the cluster routes any private subnet, shared ones included.
pub(super) fn any_private_managed(full: &FullSpec) -> bool {
    let mut subnets = full.network.subnets.iter();
    subnets.any(|one| one.kind.is_private() && is_managed(one))
}

/// Route table, routes and associations of public and utility subnets. They exist if the cluster has a subnet of its own.
fn public_routing(full: &FullSpec) -> Vec<Cloud> {
    let any_own = full.network.subnets.iter().any(|one| one.shared.is_none());
    if !any_own || !any_managed(full) {
        return Vec::new();
    }
    let table = route_table(full, &full.name, "public");
    let to = super::own_ref::<RouteTable>(&full.name);
    let routes = internet_routes(full, "route", &to);
    let associations = routed_subnets(full)
        .filter(|one| !uses_nat(full, one))
        .map(|one| table_association(names::subnet_name(&full.name, &one.name), full, one, &to));
    std::iter::once(table)
        .chain(routes)
        .chain(associations)
        .collect()
}

/// The default routes to the internet gateway, IPv4 and IPv6.
fn internet_routes(full: &FullSpec, prefix: &str, table: &Ref) -> Vec<Cloud> {
    let gateway = match &full.network.shared_vpc {
        None => Some(super::own_ref::<InternetGateway>(&full.name)),
        Some(_) => full.network.shared_internet_gateway.clone().map(Ref::Given),
    };
    let routes = gateway.into_iter().flat_map(|gateway| {
        [EVERYWHERE, EVERYWHERE_V6].map(|destination| {
            let target = RouteTarget::GatewayId(gateway.clone());
            make_route(
                format!("{prefix}-{destination}"),
                table,
                destination,
                target,
            )
        })
    });
    routes.collect()
}

/// Routing of the subnets of a zone that share a NAT gateway, or another way to the IPv4 internet: a route table of the private
/// ones, and one of the public ones.
fn nat_routing(full: &FullSpec, zone: &str, subnets: &[&Subnet]) -> Vec<Cloud> {
    let egress = subnets.iter().find_map(|one| one.egress.as_deref());
    let way_out = match egress {
        Some(given) if !given.starts_with("eipalloc-") => route_target(given),
        _ => {
            let name = names::nat_gateway(&full.name, zone);
            RouteTarget::NatGatewayId(super::own_ref::<NatGateway>(name))
        }
    };
    let (private, public): (Vec<&Subnet>, Vec<&Subnet>) =
        subnets.iter().partition(|one| one.kind.is_private());
    let mut all = nat_gateway(full, zone, egress, !private.is_empty());
    if !private.is_empty() {
        all.extend(private_routing(full, zone, &private, &way_out));
    }
    if !public.is_empty() {
        all.extend(public_ipv6_routing(full, zone, &public, way_out));
    }
    all
}

/// Routing of the private subnets of a zone, which share a route table and default routes.
fn private_routing(
    full: &FullSpec,
    zone: &str,
    subnets: &[&Subnet],
    way_out: &RouteTarget,
) -> Vec<Cloud> {
    let name = names::private_route_table(&full.name, zone);
    let to = super::own_ref::<RouteTable>(&name);
    let mut all = vec![route_table(full, &name, &format!("private-{zone}"))];
    let mut add = |destination: &str, target: RouteTarget| {
        let name = format!("route-private-{zone}-{destination}");
        all.push(make_route(name, &to, destination, target));
    };
    add(EVERYWHERE, way_out.clone());
    if full.is_ipv6() {
        add(NAT64, way_out.clone());
    }
    if let Some(gateway) = egress_only_gateway(full) {
        add(
            EVERYWHERE_V6,
            RouteTarget::EgressOnlyInternetGatewayId(gateway),
        );
    }
    for subnet in subnets {
        let name = format!("private-{}", names::subnet_name(&full.name, &subnet.name));
        all.push(table_association(name, full, subnet, &to));
        all.extend(subnet.additional_routes.iter().map(|(cidr, via)| {
            let name = format!("route-{}-{cidr}", subnet.name);
            make_route(name, &to, cidr, route_target(via))
        }));
    }
    all
}

/// The gateway of private subnets to the IPv6 internet, in an IPv6 cluster.
fn egress_only_gateway(full: &FullSpec) -> Option<Ref> {
    if !full.is_ipv6() {
        return None;
    }
    let network = &full.network;
    match network.shared_vpc {
        None => Some(super::own_ref::<EgressOnlyInternetGateway>(&full.name)),
        Some(_) => network
            .shared_egress_only_internet_gateway
            .clone()
            .map(Ref::Given),
    }
}

/// Routing of the public subnets with IPv6 of a zone, in an IPv6 cluster.
fn public_ipv6_routing(
    full: &FullSpec,
    zone: &str,
    subnets: &[&Subnet],
    way_out: RouteTarget,
) -> Vec<Cloud> {
    let name = names::public_route_table(&full.name, zone);
    let to = super::own_ref::<RouteTable>(&name);
    let prefix = format!("route-public-{zone}");
    let mut all = vec![route_table(full, &name, &format!("public-{zone}"))];
    all.extend(internet_routes(full, &prefix, &to));
    all.push(make_route(format!("{prefix}-{NAT64}"), &to, NAT64, way_out));
    all.extend(subnets.iter().map(|subnet| {
        let name = format!("public-{}", names::subnet_name(&full.name, &subnet.name));
        table_association(name, full, subnet, &to)
    }));
    all
}

/// The zone's NAT gateway and its address, unless the spec sets another egress.
fn nat_gateway(full: &FullSpec, zone: &str, egress: Option<&str>, private: bool) -> Vec<Cloud> {
    if egress.is_some_and(|given| !given.starts_with("eipalloc-")) {
        return Vec::new();
    }
    let Some(place) = nat_gateway_subnet(full, zone, private) else {
        return Vec::new();
    };
    let name = names::nat_gateway(&full.name, zone);
    let tags = cluster_tags(full, &name);
    let given = egress.map(|given| Ref::Given(given.into()));
    let address = given.is_none().then(|| {
        Cloud::from(Eip {
            name: name.clone(),
            domain: "vpc".into(),
            tags: tags.clone(),
        })
    });
    let gateway = NatGateway {
        subnet_id: super::subnet_ref(full, place),
        allocation_id: given.unwrap_or_else(|| super::own_ref::<Eip>(&name)),
        name,
        tags,
    };
    address.into_iter().chain([gateway.into()]).collect()
}

/// The subnet of the zone's NAT gateway: a utility subnet, else a public one; without private subnets the other way round.
fn nat_gateway_subnet<'a>(full: &'a FullSpec, zone: &str, private: bool) -> Option<&'a Subnet> {
    let in_zone = |kind| {
        let fits = move |one: &&Subnet| one.zone == zone && one.kind == kind;
        full.network.subnets.iter().find(fits)
    };
    let (utility, public) = (in_zone(SubnetType::Utility), in_zone(SubnetType::Public));
    if private {
        utility.or(public)
    } else {
        public.or(utility)
    }
}

/// The route target of an id in the spec, by its prefix. Gateways of all other kinds share one field in AWS.
fn route_target(id: &str) -> RouteTarget {
    let to = Ref::Given(id.to_owned());
    match id.split_once('-').map(|(prefix, _)| prefix) {
        Some("nat") => RouteTarget::NatGatewayId(to),
        Some("i") => RouteTarget::InstanceId(to),
        Some("tgw") => RouteTarget::TransitGatewayId(to),
        Some("pcx") => RouteTarget::VpcPeeringConnectionId(to),
        Some("eigw") => RouteTarget::EgressOnlyInternetGatewayId(to),
        _ => RouteTarget::GatewayId(to),
    }
}

fn route_table(full: &FullSpec, name: &str, role: &str) -> Cloud {
    let mut tags = cluster_tags(full, name);
    tags.insert(names::ROUTE_TABLE_ROLE_TAG.into(), role.into());
    RouteTable {
        name: name.to_owned(),
        vpc_id: super::vpc_ref(full),
        tags,
    }
    .into()
}

fn make_route(name: String, table: &Ref, destination: &str, target: RouteTarget) -> Cloud {
    Route {
        name,
        route_table_id: table.clone(),
        destination: destination.to_owned(),
        target,
    }
    .into()
}

fn table_association(name: String, full: &FullSpec, subnet: &Subnet, table: &Ref) -> Cloud {
    RouteTableAssociation {
        name,
        route_table_id: table.clone(),
        subnet_id: super::subnet_ref(full, subnet),
    }
    .into()
}
