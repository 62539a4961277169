//! Route tables, routes, the NAT gateways behind which private subnets stand, and their endpoint for S3. Only our own subnets are
//! routed, and of those only the ones whose egress is not `External`.

use crate::{FullSpec, Subnet, SubnetType, tags};
use cloud::{
    Cloud, Eip, InternetGateway, NatGateway, Route, RouteTable, RouteTableAssociation, RouteTarget,
    VpcEndpoint,
};
use engine::Ref;
use node::names;
use std::collections::BTreeMap;

/// The default routes.
const EVERYWHERE: &str = "0.0.0.0/0";
const EVERYWHERE_V6: &str = "::/0";

pub(super) fn build(full: &FullSpec) -> Vec<Cloud> {
    let mut all = public(full);
    let mut zones: BTreeMap<&str, Vec<&Subnet>> = BTreeMap::new();
    for subnet in routed(full).filter(|one| one.kind == SubnetType::Private) {
        zones.entry(&subnet.zone).or_default().push(subnet);
    }
    for (zone, subnets) in &zones {
        all.extend(private(full, zone, subnets));
    }
    let behind_own_nat = zones
        .iter()
        .filter(|(_, subnets)| subnets.iter().all(|one| one.egress.is_none()))
        .map(|(zone, _)| names::private_route_table(&full.name, zone));
    all.extend(s3_endpoint(full, behind_own_nat));
    all
}

/// A gateway endpoint that takes traffic for S3 off the NAT gateways of these route tables. Only in a VPC of the cluster's own,
/// and only for tables whose way out is the cluster's own: another egress, or an address that the user chose, may be what
/// bucket policies of the user's go by, and S3 sees neither behind an endpoint. The service has this name in China too.
fn s3_endpoint(full: &FullSpec, tables: impl Iterator<Item = String>) -> Option<Cloud> {
    let tables = super::sorted(tables.map(super::own::<RouteTable>));
    if full.network.shared_vpc.is_some() || tables.is_empty() {
        return None;
    }
    let name = format!("s3.{}", full.name);
    let endpoint = VpcEndpoint {
        vpc_id: super::vpc(full),
        service_name: format!("com.amazonaws.{}.s3", full.placement.region),
        vpc_endpoint_type: VpcEndpoint::GATEWAY.to_owned(),
        route_table_ids: tables,
        tags: tags(full, &name),
        name,
    };
    Some(endpoint.into())
}

/// True if any subnet, shared ones included, leaves its routing to the cluster.
pub(super) fn any_managed(full: &FullSpec) -> bool {
    full.network.subnets.iter().any(managed)
}

fn managed(subnet: &Subnet) -> bool {
    subnet.egress.as_deref() != Some("External")
}

fn routed(full: &FullSpec) -> impl Iterator<Item = &Subnet> {
    let ours = |one: &&Subnet| one.shared.is_none() && managed(one);
    full.network.subnets.iter().filter(ours)
}

/// The table of public and utility subnets. It exists as soon as one subnet is ours.
fn public(full: &FullSpec) -> Vec<Cloud> {
    let any_ours = full.network.subnets.iter().any(|one| one.shared.is_none());
    if !any_ours || !any_managed(full) {
        return Vec::new();
    }
    let table = route_table(full, &full.name, "public");
    let to = super::own::<RouteTable>(&full.name);
    let gateway = match &full.network.shared_vpc {
        None => Some(super::own::<InternetGateway>(&full.name)),
        Some(_) => full.network.shared_internet_gateway.clone().map(Ref::Given),
    };
    let routes = gateway.into_iter().flat_map(|gateway| {
        [EVERYWHERE, EVERYWHERE_V6].map(|destination| {
            let target = RouteTarget::GatewayId(gateway.clone());
            route(format!("route-{destination}"), &to, destination, target)
        })
    });
    let associations = routed(full)
        .filter(|one| one.kind != SubnetType::Private)
        .map(|one| association(names::subnet(&full.name, &one.name), full, one, &to));
    std::iter::once(table)
        .chain(routes)
        .chain(associations)
        .collect()
}

/// One zone's private subnets: they share a table and a way out.
fn private(full: &FullSpec, zone: &str, subnets: &[&Subnet]) -> Vec<Cloud> {
    let name = names::private_route_table(&full.name, zone);
    let to = super::own::<RouteTable>(&name);
    let egress = subnets.iter().find_map(|one| one.egress.as_deref());
    let mut all = vec![route_table(full, &name, &format!("private-{zone}"))];
    all.extend(nat_gateway(full, zone, egress));
    let way_out = match egress {
        Some(given) if !given.starts_with("eipalloc-") => target(given),
        _ => {
            let name = names::nat_gateway(&full.name, zone);
            RouteTarget::NatGatewayId(super::own::<NatGateway>(name))
        }
    };
    let default = format!("route-private-{zone}-{EVERYWHERE}");
    all.push(route(default, &to, EVERYWHERE, way_out));
    for subnet in subnets {
        let name = format!("private-{}", names::subnet(&full.name, &subnet.name));
        all.push(association(name, full, subnet, &to));
        all.extend(subnet.additional_routes.iter().map(|(cidr, via)| {
            let name = format!("route-{}-{cidr}", subnet.name);
            route(name, &to, cidr, target(via))
        }));
    }
    all
}

/// The zone's NAT gateway and its address, unless the user gave the way out.
fn nat_gateway(full: &FullSpec, zone: &str, egress: Option<&str>) -> Vec<Cloud> {
    if egress.is_some_and(|given| !given.starts_with("eipalloc-")) {
        return Vec::new();
    }
    let Some(place) = place_of_nat_gateway(full, zone) else {
        return Vec::new();
    };
    let name = names::nat_gateway(&full.name, zone);
    let tags = tags(full, &name);
    let given = egress.map(|given| Ref::Given(given.into()));
    let address = given.is_none().then(|| {
        Cloud::from(Eip {
            name: name.clone(),
            domain: "vpc".into(),
            tags: tags.clone(),
        })
    });
    let gateway = NatGateway {
        subnet_id: super::subnet(full, place),
        allocation_id: given.unwrap_or_else(|| super::own::<Eip>(&name)),
        name,
        tags,
    };
    address.into_iter().chain([gateway.into()]).collect()
}

/// The subnet of the zone that a NAT gateway stands in: a utility subnet, else a public one.
fn place_of_nat_gateway<'a>(full: &'a FullSpec, zone: &str) -> Option<&'a Subnet> {
    let in_zone = |kind| {
        let fits = move |one: &&Subnet| one.zone == zone && one.kind == kind;
        full.network.subnets.iter().find(fits)
    };
    in_zone(SubnetType::Utility).or_else(|| in_zone(SubnetType::Public))
}

/// What a target of the user's is, by the prefix of its id; gateways of all other kinds go by one field in AWS.
fn target(id: &str) -> RouteTarget {
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
    let mut tags = tags(full, name);
    tags.insert(names::ROUTE_TABLE_ROLE_TAG.into(), role.into());
    RouteTable {
        name: name.to_owned(),
        vpc_id: super::vpc(full),
        tags,
    }
    .into()
}

fn route(name: String, table: &Ref, destination: &str, target: RouteTarget) -> Cloud {
    Route {
        name,
        route_table_id: table.clone(),
        destination: destination.to_owned(),
        target,
    }
    .into()
}

fn association(name: String, full: &FullSpec, subnet: &Subnet, table: &Ref) -> Cloud {
    RouteTableAssociation {
        name,
        route_table_id: table.clone(),
        subnet_id: super::subnet(full, subnet),
    }
    .into()
}
