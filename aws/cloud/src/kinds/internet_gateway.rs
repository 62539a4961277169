//! The internet gateway.

use super::ec2::{name_filter, owned_filter, read_tags, retag, tag_specification, without_retries};
use super::{Found, Have, Verbs, after_effect, created_ready, find_same, observed_item, physical};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, require_answer};
use aws_sdk_ec2::types::{self, Filter, ResourceType};
use cloud::{Cloud, InternetGateway, Kind, Vpc};
use engine::{Failure, Observed, Put, Refs, Removed};
use node::names::logical_name;

pub(crate) async fn fetch(
    world: &AwsWorld,
    more: Option<Filter>,
) -> Result<Vec<types::InternetGateway>, Failure> {
    let call = world.clients.ec2.describe_internet_gateways();
    let filters = more.into_iter().chain([owned_filter(world)]).collect();
    let pages = call.set_filters(Some(filters)).into_paginator();
    let found: Result<Vec<_>, _> = pages.items().send().collect().await;
    found.classify_call("ec2:DescribeInternetGateways")
}

pub(crate) fn observe(raw: &types::InternetGateway, names: &Names) -> Option<Observed<Cloud>> {
    let tags = read_tags(raw.tags());
    let attached = raw.attachments().iter().find_map(|one| one.vpc_id());
    let gateway = InternetGateway {
        name: logical_name(&tags)?,
        vpc_id: attached.map(|vpc| names.reference::<Vpc>(vpc)),
        tags,
    };
    let mut seen = observed_item(gateway, raw.internet_gateway_id()?);
    seen.attrs
        .extend(attached.map(|vpc| (VPC.to_owned(), vpc.to_owned())));
    Some(seen)
}

/// Attribute: the VPC that it is attached to; missing until it is attached.
pub(super) const VPC: &str = "vpc_id";

impl Verbs for InternetGateway {
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
        let Some(have) = have else {
            let gateway = create(world, want).await?;
            let attached = after_effect(attach(world, &gateway, want, refs).await)?;
            return Ok(attached);
        };
        let mut put = created_ready(have.physical);
        if have.resource.vpc_id != want.vpc_id {
            if let Some(vpc) = have.attrs.get(VPC) {
                detach(world, have.physical, vpc).await?;
            }
            put = attach(world, have.physical, want, refs).await?;
        }
        retag(world, have.physical, &have.resource.tags, &want.tags).await?;
        Ok(put)
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        if let Some(vpc) = have.attrs.get(VPC) {
            detach(world, have.physical, vpc).await?;
        }
        let call = world.clients.ec2.delete_internet_gateway();
        let call = call.internet_gateway_id(have.physical).send();
        call.await.classify_call("ec2:DeleteInternetGateway")?;
        Ok(Removed::Done)
    }
}

async fn create(world: &AwsWorld, want: &InternetGateway) -> Result<String, Failure> {
    const CALL: &str = "ec2:CreateInternetGateway";
    let call = world.clients.ec2.create_internet_gateway();
    let call =
        call.tag_specifications(tag_specification(ResourceType::InternetGateway, &want.tags));
    let answer = call
        .customize()
        .config_override(without_retries())
        .send()
        .await;
    let gateway = answer.classify_creation(CALL)?.internet_gateway;
    require_answer(gateway.and_then(|one| one.internet_gateway_id), CALL)
}

/// Attaches it to its VPC, which becomes its attribute.
async fn attach(
    world: &AwsWorld,
    gateway: &str,
    want: &InternetGateway,
    refs: &Refs,
) -> Result<Put, Failure> {
    const CALL: &str = "ec2:AttachInternetGateway";
    let mut put = created_ready(gateway);
    if let Some(vpc) = &want.vpc_id {
        let vpc = physical(refs, vpc, CALL)?;
        let call = world.clients.ec2.attach_internet_gateway();
        let call = call.internet_gateway_id(gateway).vpc_id(&vpc);
        call.send().await.classify_creation(CALL)?;
        put.attrs.insert(VPC.to_owned(), vpc);
    }
    Ok(put)
}

async fn detach(world: &AwsWorld, gateway: &str, vpc: &str) -> Result<(), Failure> {
    let call = world.clients.ec2.detach_internet_gateway();
    let call = call.internet_gateway_id(gateway).vpc_id(vpc).send();
    match call.await.classify_call("ec2:DetachInternetGateway") {
        Err(failure) if failure.code != "Gateway.NotAttached" => Err(failure),
        _ => Ok(()),
    }
}
