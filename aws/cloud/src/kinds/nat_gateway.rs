//! A NAT gateway: minutes to come, minutes to go.

use super::ec2::{filter, name_filter, owned_filter, read_tags, retag, tag_specification};
use super::internet_gateway::VPC;
use super::{
    Found, Have, Verbs, client_token, created_ready, desired_of_kind, find_same, observed_item,
    physical, rfc3339_time,
};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, local_failure, none_if_absent, require_answer};
use aws_sdk_ec2::types::{self, Filter, NatGatewayState, ResourceType};
use cloud::{Cloud, Eip, InternetGateway, Kind, NatGateway, Subnet};
use engine::{Class, Failure, Observed, Put, Refs, Removed};
use node::names::logical_name;

const DESCRIBE: &str = "ec2:DescribeNatGateways";

pub(crate) async fn fetch(
    world: &AwsWorld,
    more: Vec<Filter>,
) -> Result<Vec<types::NatGateway>, Failure> {
    let call = world.clients.ec2.describe_nat_gateways();
    let call = more.into_iter().fold(call, aws_sdk_ec2::operation::describe_nat_gateways::builders::DescribeNatGatewaysFluentBuilder::filter);
    let found: Result<Vec<_>, _> = call.into_paginator().items().send().collect().await;
    found.classify_call(DESCRIBE)
}

/// Those that are there or will be: a failed or deleted gateway is listed for another hour.
pub(crate) fn alive_filter(world: &AwsWorld) -> Vec<Filter> {
    let states = Filter::builder().name("state");
    let states = states.values("pending").values("available").build();
    vec![owned_filter(world), states]
}

pub(crate) fn observe(raw: &types::NatGateway, names: &Names) -> Option<Observed<Cloud>> {
    let tags = read_tags(raw.tags());
    let mut addresses = raw.nat_gateway_addresses().iter();
    let address = addresses.find_map(|one| one.allocation_id());
    let gateway = NatGateway {
        name: logical_name(&tags)?,
        subnet_id: names.reference::<Subnet>(raw.subnet_id()?),
        allocation_id: names.reference::<Eip>(address.unwrap_or_default()),
        tags,
    };
    Some(Observed {
        created: rfc3339_time(raw.create_time()),
        ..observed_item(gateway, raw.nat_gateway_id()?)
    })
}

impl Verbs for NatGateway {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        let names = Names::for_references(&want.refs(), refs);
        let mut by = alive_filter(world);
        by.push(name_filter(&want.name));
        let found = fetch(world, by).await?;
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
        const CALL: &str = "ec2:CreateNatGateway";
        if let Some(have) = have {
            retag(world, have.physical, &have.resource.tags, &want.tags).await?;
            return Ok(created_ready(have.physical));
        }
        needs_internet_gateway(world, refs, CALL)?;
        let subnet = physical(refs, &want.subnet_id, CALL)?;
        let address = physical(refs, &want.allocation_id, CALL)?;
        let call = world
            .clients
            .ec2
            .create_nat_gateway()
            .client_token(client_token(world, &want.id(), &[&subnet, &address]))
            .subnet_id(subnet)
            .allocation_id(address)
            .tag_specifications(tag_specification(ResourceType::Natgateway, &want.tags));
        let answer = call.send().await.classify_creation(CALL)?;
        let gateway = require_answer(answer.nat_gateway, CALL)?;
        let id = require_answer(gateway.nat_gateway_id.clone(), CALL)?;
        put_state(&gateway, &id)
    }

    async fn ready(world: &AwsWorld, _want: &Self, physical: &str) -> Result<Put, Failure> {
        let found = fetch(world, vec![filter("nat-gateway-id", physical)]).await?;
        match found.first() {
            Some(gateway) => put_state(gateway, physical),
            None => Err(local_failure(Class::Gone, DESCRIBE, "it is not there")),
        }
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let call = world.clients.ec2.delete_nat_gateway();
        let call = call.nat_gateway_id(have.physical).send();
        call.await.classify_call("ec2:DeleteNatGateway")?;
        Ok(deletion_pending())
    }

    async fn gone(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let by = vec![filter("nat-gateway-id", have.physical)];
        let found = none_if_absent(fetch(world, by).await)?.unwrap_or_default();
        let there = |one: &types::NatGateway| one.state() != Some(&NatGatewayState::Deleted);
        Ok(if found.iter().any(there) {
            deletion_pending()
        } else {
            Removed::Done
        })
    }
}

fn deletion_pending() -> Removed {
    Removed::Waiting("the NAT gateway to let go of its address".to_owned())
}

fn put_state(gateway: &types::NatGateway, id: &str) -> Result<Put, Failure> {
    let mut put = created_ready(id);
    match gateway.state() {
        Some(NatGatewayState::Available) => {}
        Some(NatGatewayState::Failed | NatGatewayState::Deleted | NatGatewayState::Deleting) => {
            let code = gateway.failure_code().unwrap_or_default().to_owned();
            let why = gateway.failure_message().unwrap_or("it is being deleted");
            let mut failure = local_failure(Class::Invalid, "ec2:CreateNatGateway", why);
            failure.code = code;
            return Err(failure);
        }
        _ => put.waiting_for = Some("the NAT gateway to become available".to_owned()),
    }
    Ok(put)
}

/// Without an attached internet gateway AWS accepts the call, and says minutes later that it failed. Nothing in these kinds refers to
/// the internet gateway, so it is looked for here. It may exist and not be attached: a run that dies can leave it so.
pub(crate) fn needs_internet_gateway(
    world: &AwsWorld,
    refs: &Refs,
    call: &str,
) -> Result<(), Failure> {
    let detached = |one: &&InternetGateway| refs.attr(&one.id(), VPC).is_none();
    match desired_of_kind::<InternetGateway>(world).find(detached) {
        Some(_) => Err(local_failure(
            Class::NotYet,
            call,
            "the internet gateway is not attached yet",
        )),
        None => Ok(()),
    }
}
