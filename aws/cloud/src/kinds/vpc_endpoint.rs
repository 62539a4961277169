//! A gateway endpoint for S3.

use super::ec2::{filter, is_owned, read_tags, retag, tag_specification};
use super::{
    Found, Have, Verbs, client_token, created_ready, desired_of_kind, find_same, observed_item,
    physical, physical_ids, rfc3339_time,
};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, item_failure, require_answer};
use aws_sdk_ec2::types::{self, ResourceType, State, VpcEndpointType};
use cloud::{Cloud, Kind, RouteTable, Vpc, VpcEndpoint};
use engine::{Failure, Observed, Put, Ref, Refs, Removed};
use node::names::logical_name;

/// All gateway endpoints of the region, those of others included: AWS refuses a second one for the same service in a table.
pub(crate) async fn fetch(world: &AwsWorld) -> Result<Vec<types::VpcEndpoint>, Failure> {
    let call = world.clients.ec2.describe_vpc_endpoints();
    let call = call.filters(filter("vpc-endpoint-type", VpcEndpoint::GATEWAY));
    let found: Result<Vec<_>, _> = call.into_paginator().items().send().collect().await;
    found.classify_call("ec2:DescribeVpcEndpoints")
}

/// The cluster's own endpoint. If it has none, one that the user attached to a route table of the cluster stands for the
/// desired one, since the table can have no other: it is observed exactly as desired and therefore never changed or deleted.
/// An endpoint for another service is the user's, whatever its tags.
pub(crate) fn observe(
    world: &AwsWorld,
    all: &[types::VpcEndpoint],
    names: &Names,
) -> Vec<Observed<Cloud>> {
    let name = format!("s3.{}", world.scope.cluster);
    let seen = all.iter().filter_map(|raw| parse_endpoint(raw, names));
    let (own, others): (Vec<Seen>, Vec<Seen>) =
        seen.partition(|one| one.endpoint.name == name && is_owned(world, &one.endpoint.tags));
    if own.is_empty() {
        let stands_for = |one: &Seen| {
            let mut wanted = desired_of_kind::<VpcEndpoint>(world);
            let wanted = wanted.find(|want| can_serve(&one.endpoint, want))?;
            Some(observed_item(wanted.clone(), one.id.as_str()))
        };
        return others.iter().find_map(stands_for).into_iter().collect();
    }
    let observed = own.into_iter().map(|one| Observed {
        created: one.created,
        ..observed_item(one.endpoint, one.id)
    });
    observed.collect()
}

/// An endpoint as AWS has it.
struct Seen {
    endpoint: VpcEndpoint,
    id: String,
    created: Option<String>,
}

/// True if it is for the same service and in a route table of the desired one.
fn can_serve(endpoint: &VpcEndpoint, want: &VpcEndpoint) -> bool {
    let mut tables = endpoint.route_table_ids.iter();
    want.service_name == endpoint.service_name
        && tables.any(|table| want.route_table_ids.contains(table))
}

/// Reads an endpoint; `None`: it is being deleted, or never came to be.
fn parse_endpoint(raw: &types::VpcEndpoint, names: &Names) -> Option<Seen> {
    let gone = matches!(
        raw.state(),
        Some(State::Deleting | State::Deleted | State::Failed | State::Rejected | State::Expired)
    );
    if gone {
        return None;
    }
    let tags = read_tags(raw.tags());
    let tables = raw.route_table_ids().iter().map(String::as_str);
    Some(Seen {
        endpoint: VpcEndpoint {
            name: logical_name(&tags).unwrap_or_default(),
            vpc_id: names.reference::<Vpc>(raw.vpc_id()?),
            service_name: raw.service_name()?.to_owned(),
            vpc_endpoint_type: VpcEndpoint::GATEWAY.to_owned(),
            route_table_ids: names.references::<RouteTable>(tables),
            tags,
        },
        id: raw.vpc_endpoint_id()?.to_owned(),
        created: rfc3339_time(raw.creation_timestamp()),
    })
}

impl Verbs for VpcEndpoint {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        let names = Names::for_references(&want.refs(), refs);
        let found = fetch(world).await?;
        Ok(find_same(observe(world, &found, &names), &want.id()))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        const CALL: &str = "ec2:CreateVpcEndpoint";
        if let Some(have) = have {
            attach(world, &have, want, refs).await?;
            retag(world, have.physical, &have.resource.tags, &want.tags).await?;
            return Ok(created_ready(have.physical));
        }
        let vpc = physical(refs, &want.vpc_id, CALL)?;
        let tables = physical_ids(refs, &want.route_table_ids, CALL)?;
        let mut of = vec![vpc.as_str()];
        of.extend(tables.iter().map(String::as_str));
        let call = world
            .clients
            .ec2
            .create_vpc_endpoint()
            .client_token(client_token(world, &want.id(), &of))
            .vpc_endpoint_type(VpcEndpointType::Gateway)
            .service_name(&want.service_name)
            .vpc_id(&vpc)
            .set_route_table_ids(Some(tables.clone()))
            .tag_specifications(tag_specification(ResourceType::VpcEndpoint, &want.tags));
        let endpoint = call.send().await.classify_creation(CALL)?.vpc_endpoint;
        require_answer(endpoint.and_then(|one| one.vpc_endpoint_id), CALL).map(created_ready)
    }

    /// AWS answers a deletion that it did not do with success, and says so in the answer (API reference of EC2,
    /// `DeleteVpcEndpoints`).
    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        const CALL: &str = "ec2:DeleteVpcEndpoints";
        let call = world.clients.ec2.delete_vpc_endpoints();
        let call = call.vpc_endpoint_ids(have.physical).send();
        let answer = call.await.classify_call(CALL)?;
        let mut errors = answer.unsuccessful().iter().filter_map(|one| one.error());
        let Some(error) = errors.next() else {
            return Ok(Removed::Done);
        };
        let code = error.code().unwrap_or_default();
        Err(item_failure(CALL, code, error.message()))
    }
}

/// Gives the endpoint the route tables that are wanted.
async fn attach(
    world: &AwsWorld,
    have: &Have<'_, VpcEndpoint>,
    want: &VpcEndpoint,
    refs: &Refs,
) -> Result<(), Failure> {
    const CALL: &str = "ec2:ModifyVpcEndpoint";
    let (has, wants) = (&have.resource.route_table_ids, &want.route_table_ids);
    let added: Vec<&Ref> = wants.iter().filter(|one| !has.contains(one)).collect();
    let removed: Vec<&Ref> = has.iter().filter(|one| !wants.contains(one)).collect();
    if added.is_empty() && removed.is_empty() {
        return Ok(());
    }
    let call = world.clients.ec2.modify_vpc_endpoint();
    let call = call
        .vpc_endpoint_id(have.physical)
        .set_add_route_table_ids(Some(physical_ids(refs, added, CALL)?))
        .set_remove_route_table_ids(Some(physical_ids(refs, removed, CALL)?));
    call.send().await.classify_call(CALL).map(drop)
}
