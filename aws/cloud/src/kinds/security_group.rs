//! A security group.

use super::blockers::name_blockers;
use super::controllers::BALANCER_CONTROLLER_TAG;
use super::ec2::{filter, is_owned, owned_filter, read_tags, retag, tag_specification};
use super::{Found, Have, Verbs, created_ready, not_ours, observed_item, physical};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, local_failure, require_answer};
use aws_sdk_ec2::types::{self, Filter, ResourceType};
use cloud::{Cloud, Kind, SecurityGroup, Vpc};
use engine::{Class, Failure, Observed, Put, Refs, Removed};
use node::names::NAME_TAG;

pub(crate) async fn fetch(world: &AwsWorld) -> Result<Vec<types::SecurityGroup>, Failure> {
    let mut found = fetch_by(world, vec![owned_filter(world)]).await?;
    if world.scope.is_deletion() {
        let tag = format!("tag:{BALANCER_CONTROLLER_TAG}");
        found.extend(fetch_by(world, vec![filter(tag, &world.scope.cluster)]).await?);
    }
    Ok(found)
}

async fn fetch_by(
    world: &AwsWorld,
    filters: Vec<Filter>,
) -> Result<Vec<types::SecurityGroup>, Failure> {
    let call = world.clients.ec2.describe_security_groups();
    let pages = call.set_filters(Some(filters)).into_paginator();
    let found: Result<Vec<_>, _> = pages.items().send().collect().await;
    found.classify_call("ec2:DescribeSecurityGroups")
}

/// The cloud controller tags the groups it makes as the cluster's too; those do not carry their own name as `Name`, and count only
/// when the cluster is deleted.
pub(crate) fn observe(
    world: &AwsWorld,
    raw: &types::SecurityGroup,
    names: &Names,
) -> Option<Observed<Cloud>> {
    let tags = read_tags(raw.tags());
    let group_name = raw.group_name()?.to_owned();
    if tags.get(NAME_TAG) != Some(&group_name) && !world.scope.is_deletion() {
        return None;
    }
    let group = SecurityGroup {
        group_name,
        description: raw.description().unwrap_or_default().to_owned(),
        vpc_id: names.reference::<Vpc>(raw.vpc_id()?),
        tags,
    };
    Some(observed_item(group, raw.group_id()?))
}

impl Verbs for SecurityGroup {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        const CALL: &str = "ec2:DescribeSecurityGroups";
        let vpc = physical(refs, &want.vpc_id, CALL)?;
        let filters = vec![
            filter("vpc-id", vpc),
            filter("group-name", &want.group_name),
        ];
        let found = fetch_by(world, filters).await?;
        let Some(raw) = found.first() else {
            return Ok(None);
        };
        let names = Names::for_references(&want.refs(), refs);
        match observe(world, raw, &names) {
            Some(seen) if is_owned(world, &read_tags(raw.tags())) => Ok(Some(seen)),
            _ => {
                let id = raw.group_id().unwrap_or_default();
                let what = format!("the security group {} ({id})", want.group_name);
                Err(not_ours(world, CALL, &what))
            }
        }
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        const CALL: &str = "ec2:CreateSecurityGroup";
        if let Some(have) = have {
            if have.resource.description != want.description {
                let message = format!(
                    "the description of {} cannot change from {:?}",
                    have.physical, have.resource.description
                );
                return Err(local_failure(Class::Invalid, CALL, message));
            }
            retag(world, have.physical, &have.resource.tags, &want.tags).await?;
            return Ok(created_ready(have.physical));
        }
        let call = world
            .clients
            .ec2
            .create_security_group()
            .group_name(&want.group_name)
            .description(&want.description)
            .vpc_id(physical(refs, &want.vpc_id, CALL)?)
            .tag_specifications(tag_specification(ResourceType::SecurityGroup, &want.tags));
        let group = call.send().await.classify_creation(CALL)?.group_id;
        require_answer(group, CALL).map(created_ready)
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let call = world.clients.ec2.delete_security_group();
        let call = call.group_id(have.physical).send();
        let done = call
            .await
            .classify_call("ec2:DeleteSecurityGroup")
            .map(drop);
        let done = match done {
            Err(failure) => Err(with_references(world, have.physical, failure).await?),
            done => done,
        };
        name_blockers(
            world,
            have.physical,
            filter("group-id", have.physical),
            done,
        )
        .await
    }
}

/// Names the groups whose rules refer to this one: ours let go of it, those of others do not.
async fn with_references(
    world: &AwsWorld,
    group: &str,
    mut failure: Failure,
) -> Result<Failure, Failure> {
    if failure.class != Class::Blocked || !world.asks_who_blocks(&format!("rules of {group}")) {
        return Ok(failure);
    }
    let mut users = Vec::new();
    for way in ["ip-permission.group-id", "egress.ip-permission.group-id"] {
        users.extend(fetch_by(world, vec![filter(way, group)]).await?);
    }
    let foreign = users
        .iter()
        .filter(|user| !is_owned(world, &read_tags(user.tags())))
        .filter_map(|user| user.group_id());
    let foreign: Vec<&str> = foreign.filter(|user| *user != group).collect();
    if !foreign.is_empty() {
        let rules = format!(" Rules of {} refer to it.", foreign.join(", "));
        failure.message.push_str(&rules);
    }
    Ok(failure)
}
