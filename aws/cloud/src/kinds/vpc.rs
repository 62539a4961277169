//! The VPC.

use super::blockers::name_blockers;
use super::ec2::{
    filter, name_filter, owned_filter, read_tags, retag, tag_specification, without_retries,
};
use super::{Found, Have, Verbs, after_effect, created_ready, find_same, observed_item};
use crate::world::AwsWorld;
use aws_client::failure::{Classify, require_answer};
use aws_sdk_ec2::types::{self, AttributeBooleanValue, ResourceType, VpcAttributeName};
use cloud::{Cloud, Kind, Vpc};
use engine::{Class, Failure, Observed, Put, Refs, Removed};
use futures::future::try_join_all;
use node::names::logical_name;

/// A VPC and the attributes that AWS describes one by one.
pub(crate) struct Raw {
    pub(crate) vpc: types::Vpc,
    dns_hostnames: bool,
    dns_support: bool,
}

pub(crate) async fn fetch(world: &AwsWorld, more: Vec<types::Filter>) -> Result<Vec<Raw>, Failure> {
    let call = world
        .clients
        .ec2
        .describe_vpcs()
        .filters(owned_filter(world));
    let call = more.into_iter().fold(
        call,
        aws_sdk_ec2::operation::describe_vpcs::builders::DescribeVpcsFluentBuilder::filters,
    );
    let vpcs: Result<Vec<_>, _> = call.into_paginator().items().send().collect().await;
    try_join_all(
        vpcs.classify_call("ec2:DescribeVpcs")?
            .into_iter()
            .map(|vpc| with_attributes(world, vpc)),
    )
    .await
}

async fn with_attributes(world: &AwsWorld, vpc: types::Vpc) -> Result<Raw, Failure> {
    let ask = |attribute| async {
        let call = world.clients.ec2.describe_vpc_attribute();
        let call = call
            .set_vpc_id(vpc.vpc_id.clone())
            .attribute(attribute)
            .send();
        let answer = call.await.classify_call("ec2:DescribeVpcAttribute");
        answer.map_err(late_not_gone)
    };
    let (hostnames, support) = futures::try_join!(
        ask(VpcAttributeName::EnableDnsHostnames),
        ask(VpcAttributeName::EnableDnsSupport)
    )?;
    let on = |value: Option<AttributeBooleanValue>| value.and_then(|value| value.value);
    Ok(Raw {
        dns_hostnames: on(hostnames.enable_dns_hostnames).unwrap_or_default(),
        dns_support: on(support.enable_dns_support).unwrap_or_default(),
        vpc,
    })
}

/// The VPC is in the list: what other calls do not see of it is late. Taken for gone, it would be made a second time.
fn late_not_gone(failure: Failure) -> Failure {
    match failure.class {
        Class::Gone => Failure {
            class: Class::Unknown,
            ..failure
        },
        _ => failure,
    }
}

pub(crate) fn observe(raw: &Raw) -> Option<Observed<Cloud>> {
    let tags = read_tags(raw.vpc.tags());
    let ranges = raw.vpc.ipv6_cidr_block_association_set();
    let vpc = Vpc {
        name: logical_name(&tags)?,
        cidr_block: raw.vpc.cidr_block()?.to_owned(),
        amazon_provided_ipv6_cidr_block: ranges.iter().any(is_associated),
        enable_dns_hostnames: raw.dns_hostnames,
        enable_dns_support: raw.dns_support,
        tags,
    };
    Some(observed_item(vpc, raw.vpc.vpc_id()?))
}

/// True if the range is the VPC's, or about to be.
fn is_associated(range: &types::VpcIpv6CidrBlockAssociation) -> bool {
    has_range(range) || state_of(range) == Some(&types::VpcCidrBlockStateCode::Associating)
}

/// True if the range is the VPC's.
pub(crate) fn has_range(range: &types::VpcIpv6CidrBlockAssociation) -> bool {
    state_of(range) == Some(&types::VpcCidrBlockStateCode::Associated)
}

fn state_of(range: &types::VpcIpv6CidrBlockAssociation) -> Option<&types::VpcCidrBlockStateCode> {
    range.ipv6_cidr_block_state()?.state()
}

impl Verbs for Vpc {
    async fn find(world: &AwsWorld, want: &Self, _refs: &Refs) -> Found {
        let found = fetch(world, vec![name_filter(&want.name)]).await?;
        Ok(find_same(found.iter().filter_map(observe), &want.id()))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        _refs: &Refs,
    ) -> Result<Put, Failure> {
        let Some(have) = have else {
            let vpc = create(world, want).await?;
            // What AWS gives a new VPC.
            let fresh = Self {
                enable_dns_hostnames: false,
                enable_dns_support: true,
                ..want.clone()
            };
            after_effect(change(world, &vpc, &fresh, want).await)?;
            return Ok(created_ready(vpc));
        };
        change(world, have.physical, have.resource, want).await?;
        retag(world, have.physical, &have.resource.tags, &want.tags).await?;
        Ok(created_ready(have.physical))
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let call = world.clients.ec2.delete_vpc().vpc_id(have.physical);
        let done = call.send().await.classify_call("ec2:DeleteVpc");
        name_blockers(
            world,
            have.physical,
            filter("vpc-id", have.physical),
            done.map(drop),
        )
        .await
    }
}

async fn create(world: &AwsWorld, want: &Vpc) -> Result<String, Failure> {
    const CALL: &str = "ec2:CreateVpc";
    let call = world
        .clients
        .ec2
        .create_vpc()
        .cidr_block(&want.cidr_block)
        .amazon_provided_ipv6_cidr_block(want.amazon_provided_ipv6_cidr_block)
        .tag_specifications(tag_specification(ResourceType::Vpc, &want.tags));
    let answer = call
        .customize()
        .config_override(without_retries())
        .send()
        .await;
    let vpc = answer.classify_creation(CALL)?.vpc;
    require_answer(vpc.and_then(|vpc| vpc.vpc_id), CALL)
}

async fn change(world: &AwsWorld, vpc: &str, have: &Vpc, want: &Vpc) -> Result<(), Failure> {
    let set = |value| AttributeBooleanValue::builder().value(value).build();
    let modify = || world.clients.ec2.modify_vpc_attribute().vpc_id(vpc);
    // Names need the resolver: it is turned on before them.
    if have.enable_dns_support != want.enable_dns_support {
        let call = modify().enable_dns_support(set(want.enable_dns_support));
        call.send()
            .await
            .classify_creation("ec2:ModifyVpcAttribute")?;
    }
    if have.enable_dns_hostnames != want.enable_dns_hostnames {
        let call = modify().enable_dns_hostnames(set(want.enable_dns_hostnames));
        call.send()
            .await
            .classify_creation("ec2:ModifyVpcAttribute")?;
    }
    if want.amazon_provided_ipv6_cidr_block && !have.amazon_provided_ipv6_cidr_block {
        let call = world.clients.ec2.associate_vpc_cidr_block().vpc_id(vpc);
        call.amazon_provided_ipv6_cidr_block(true)
            .send()
            .await
            .classify_creation("ec2:AssociateVpcCidrBlock")?;
    }
    Ok(())
}
