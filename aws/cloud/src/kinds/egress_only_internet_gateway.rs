//! The egress-only internet gateway.

use super::ec2::{name_filter, owned_filter, read_tags, retag, tag_specification};
use super::{Found, Have, Verbs, client_token, created_ready, find_same, observed_item, physical};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, local_failure, require_answer};
use aws_sdk_ec2::types::{self, Filter, ResourceType};
use cloud::{Cloud, EgressOnlyInternetGateway, Kind, Vpc};
use engine::{Class, Failure, Observed, Put, Refs, Removed};
use node::names::logical_name;

/// The cluster's; none without a call if it is no IPv6 cluster.
pub(crate) async fn fetch(
    world: &AwsWorld,
    more: Option<Filter>,
) -> Result<Vec<types::EgressOnlyInternetGateway>, Failure> {
    if !world.scope.ipv6 {
        return Ok(Vec::new());
    }
    let call = world.clients.ec2.describe_egress_only_internet_gateways();
    let filters = more.into_iter().chain([owned_filter(world)]).collect();
    let pages = call.set_filters(Some(filters)).into_paginator();
    let found: Result<Vec<_>, _> = pages.items().send().collect().await;
    found.classify_call("ec2:DescribeEgressOnlyInternetGateways")
}

pub(crate) fn observe(
    raw: &types::EgressOnlyInternetGateway,
    names: &Names,
) -> Option<Observed<Cloud>> {
    let tags = read_tags(raw.tags());
    let vpc = raw.attachments().iter().find_map(|one| one.vpc_id())?;
    let gateway = EgressOnlyInternetGateway {
        name: logical_name(&tags)?,
        vpc_id: names.reference::<Vpc>(vpc),
        tags,
    };
    Some(observed_item(
        gateway,
        raw.egress_only_internet_gateway_id()?,
    ))
}

impl Verbs for EgressOnlyInternetGateway {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        let names = Names::for_references(&want.refs(), refs);
        let found = fetch(world, Some(name_filter(&want.name))).await?;
        Ok(find_same(
            found.iter().filter_map(|raw| observe(raw, &names)),
            &want.id(),
        ))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        const CALL: &str = "ec2:CreateEgressOnlyInternetGateway";
        if let Some(have) = have {
            retag(world, have.physical, &have.resource.tags, &want.tags).await?;
            return Ok(created_ready(have.physical));
        }
        let vpc = physical(refs, &want.vpc_id, CALL)?;
        let call = world.clients.ec2.create_egress_only_internet_gateway();
        let call = call
            .client_token(client_token(world, &want.id(), &[&vpc]))
            .vpc_id(&vpc)
            .tag_specifications(tag_specification(
                ResourceType::EgressOnlyInternetGateway,
                &want.tags,
            ));
        let answer = call.send().await.classify_creation(CALL)?;
        let gateway = answer.egress_only_internet_gateway;
        let id = gateway.and_then(|one| one.egress_only_internet_gateway_id);
        require_answer(id, CALL).map(created_ready)
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        const CALL: &str = "ec2:DeleteEgressOnlyInternetGateway";
        let call = world.clients.ec2.delete_egress_only_internet_gateway();
        let call = call.egress_only_internet_gateway_id(have.physical);
        let answer = call.send().await.classify_call(CALL)?;
        if answer.return_code == Some(false) {
            let message = "AWS did not delete it";
            return Err(local_failure(Class::Blocked, CALL, message));
        }
        Ok(Removed::Done)
    }
}
