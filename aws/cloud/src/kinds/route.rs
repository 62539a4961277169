//! A route. Ours are the default routes and those to destinations that the spec names: the cloud controller
//! and the user may add others to the same table.

use super::ec2::filter;
use super::route_table::fetch;
use super::{Found, Have, Verbs, created_ready, desired_of_kind, observed_item, physical};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, local_failure};
use aws_sdk_ec2::types;
use cloud::{
    Cloud, EgressOnlyInternetGateway, InternetGateway, Kind, NatGateway, Route, RouteTable,
    RouteTarget,
};
use engine::{Class, Failure, Observed, Put, Ref, Refs, Removed};

/// The last is that of NAT64.
const DEFAULT: [&str; 3] = ["0.0.0.0/0", "::/0", "64:ff9b::/96"];

/// Between a route's table and destination in its physical id.
const BETWEEN: char = '_';

pub(crate) fn observe(
    world: &AwsWorld,
    raw: &types::RouteTable,
    names: &Names,
) -> Vec<Observed<Cloud>> {
    let one = |route: &types::Route| {
        let destination = route_destination(route)?;
        let table = names.reference::<RouteTable>(raw.route_table_id()?);
        let wanted = desired_of_kind::<Route>(world)
            .find(|want| want.route_table_id == table && want.destination == destination);
        let more = &world.scope.route_destinations;
        let ours = wanted.is_some()
            || DEFAULT.contains(&destination)
            || more.iter().any(|one| one == destination);
        let target = route_target(route, names).filter(|_| ours)?;
        let physical = format!("{}{BETWEEN}{destination}", raw.route_table_id()?);
        let route = Route {
            name: wanted.map_or_else(
                || canonical_name(world, &table, destination),
                |one| one.name.clone(),
            ),
            route_table_id: table,
            destination: destination.to_owned(),
            target,
        };
        Some(observed_item(route, physical))
    };
    raw.routes().iter().filter_map(one).collect()
}

/// AWS keeps no names of routes: table and destination tell them apart.
fn canonical_name(world: &AwsWorld, table: &Ref, destination: &str) -> String {
    let (Ref::Own { name, .. } | Ref::Given(name)) = table;
    let suffix = format!(".{}", world.scope.cluster);
    match name.strip_suffix(&suffix) {
        Some(table) => format!("route-{table}-{destination}"),
        None => format!("route-{destination}"),
    }
}

fn route_destination(route: &types::Route) -> Option<&str> {
    route
        .destination_cidr_block()
        .or(route.destination_ipv6_cidr_block())
}

/// Where it leads; `None` for what every table has by itself.
fn route_target(route: &types::Route, names: &Names) -> Option<RouteTarget> {
    let given = |id: &str| Ref::Given(id.to_owned());
    Some(if let Some(id) = route.nat_gateway_id() {
        RouteTarget::NatGatewayId(names.reference::<NatGateway>(id))
    } else if let Some(id) = route.instance_id() {
        RouteTarget::InstanceId(given(id))
    } else if let Some(id) = route.transit_gateway_id() {
        RouteTarget::TransitGatewayId(given(id))
    } else if let Some(id) = route.vpc_peering_connection_id() {
        RouteTarget::VpcPeeringConnectionId(given(id))
    } else if let Some(id) = route.egress_only_internet_gateway_id() {
        RouteTarget::EgressOnlyInternetGatewayId(names.reference::<EgressOnlyInternetGateway>(id))
    } else {
        let id = route.gateway_id().filter(|id| *id != "local")?;
        RouteTarget::GatewayId(names.reference::<InternetGateway>(id))
    })
}

impl Verbs for Route {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        let table = physical(refs, &want.route_table_id, "ec2:DescribeRouteTables")?;
        let found = fetch(world, vec![filter("route-table-id", table)]).await?;
        let names = Names::for_references(&want.refs(), refs);
        let mut items = found.iter().flat_map(|raw| observe(world, raw, &names));
        Ok(items.find_map(|mut item| {
            let Cloud::Route(one) = &mut item.resource else {
                return None;
            };
            one.name.clone_from(&want.name);
            (one.destination == want.destination).then_some(item)
        }))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        let table = physical(refs, &want.route_table_id, "ec2:CreateRoute")?;
        let made = created_ready(format!("{table}{BETWEEN}{}", want.destination));
        if have.is_some() {
            replace(world, want, &table, refs).await?;
        } else {
            create(world, want, &table, refs).await?;
        }
        Ok(made)
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        const CALL: &str = "ec2:DeleteRoute";
        let Some((table, destination)) = have.physical.split_once(BETWEEN) else {
            return Err(local_failure(
                Class::Invalid,
                CALL,
                "no table in the route's id",
            ));
        };
        let call = world.clients.ec2.delete_route().route_table_id(table);
        let call = if destination.contains(':') {
            call.destination_ipv6_cidr_block(destination)
        } else {
            call.destination_cidr_block(destination)
        };
        call.send().await.classify_call(CALL)?;
        Ok(Removed::Done)
    }
}

async fn create(world: &AwsWorld, want: &Route, table: &str, refs: &Refs) -> Result<(), Failure> {
    const CALL: &str = "ec2:CreateRoute";
    let to = physical(refs, want.target.reference(), CALL)?;
    let call = world.clients.ec2.create_route().route_table_id(table);
    let call = if want.destination.contains(':') {
        call.destination_ipv6_cidr_block(&want.destination)
    } else {
        call.destination_cidr_block(&want.destination)
    };
    let call = match want.target {
        RouteTarget::GatewayId(_) => call.gateway_id(to),
        RouteTarget::NatGatewayId(_) => call.nat_gateway_id(to),
        RouteTarget::InstanceId(_) => call.instance_id(to),
        RouteTarget::TransitGatewayId(_) => call.transit_gateway_id(to),
        RouteTarget::VpcPeeringConnectionId(_) => call.vpc_peering_connection_id(to),
        RouteTarget::EgressOnlyInternetGatewayId(_) => call.egress_only_internet_gateway_id(to),
    };
    call.send().await.classify_creation(CALL).map(drop)
}

async fn replace(world: &AwsWorld, want: &Route, table: &str, refs: &Refs) -> Result<(), Failure> {
    const CALL: &str = "ec2:ReplaceRoute";
    let to = physical(refs, want.target.reference(), CALL)?;
    let call = world.clients.ec2.replace_route().route_table_id(table);
    let call = if want.destination.contains(':') {
        call.destination_ipv6_cidr_block(&want.destination)
    } else {
        call.destination_cidr_block(&want.destination)
    };
    let call = match want.target {
        RouteTarget::GatewayId(_) => call.gateway_id(to),
        RouteTarget::NatGatewayId(_) => call.nat_gateway_id(to),
        RouteTarget::InstanceId(_) => call.instance_id(to),
        RouteTarget::TransitGatewayId(_) => call.transit_gateway_id(to),
        RouteTarget::VpcPeeringConnectionId(_) => call.vpc_peering_connection_id(to),
        RouteTarget::EgressOnlyInternetGatewayId(_) => call.egress_only_internet_gateway_id(to),
    };
    call.send().await.classify_creation(CALL).map(drop)
}
