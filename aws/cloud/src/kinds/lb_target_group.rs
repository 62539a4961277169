//! A target group.

use super::controllers::goes_with_cluster;
use super::lb_tags::{self, retag, write_tags};
use super::{Found, Have, Verbs, after_effect, created_ready, not_ours, observed_item, physical};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, none_if_absent, require_answer};
use aws_sdk_elasticloadbalancingv2::types::{
    self as elb, Matcher, ProtocolEnum, TargetGroupAttribute,
};
use cloud::{Cloud, HealthCheck, Kind, LbTargetGroup, Tags, Vpc};
use engine::{Failure, Observed, Put, Refs, Removed};
use futures::future::try_join_all;
use std::collections::BTreeMap;

const DESCRIBE: &str = "elasticloadbalancing:DescribeTargetGroups";

const TERMINATION: &str = "deregistration_delay.connection_termination.enabled";
const DELAY: &str = "deregistration_delay.timeout_seconds";

/// A target group with its attributes and tags.
pub(crate) struct Raw {
    group: elb::TargetGroup,
    attributes: BTreeMap<String, String>,
    tags: Tags,
}

/// Every target group that may be the cluster's by its name; every one if the cluster is deleted.
pub(crate) async fn fetch(world: &AwsWorld) -> Result<Vec<elb::TargetGroup>, Failure> {
    let call = world.clients.elb.describe_target_groups();
    let pages = call.into_paginator().items().send();
    let found: Result<Vec<elb::TargetGroup>, _> = pages.collect().await;
    let prefixes = &world.scope.balancer_prefixes;
    let mut found = found.classify_call(DESCRIBE)?;
    found.retain(|one| {
        let name = one.target_group_name().unwrap_or_default();
        world.scope.is_deletion() || prefixes.iter().any(|prefix| name.starts_with(prefix))
    });
    Ok(found)
}

/// Those that the cluster owns, with their attributes.
pub(crate) async fn read_owned_attributes(
    world: &AwsWorld,
    found: Vec<elb::TargetGroup>,
    tags: &BTreeMap<String, Tags>,
) -> Result<Vec<Raw>, Failure> {
    let owned = found.into_iter().filter_map(|group| {
        let tags = tags.get(group.target_group_arn()?)?.clone();
        goes_with_cluster(world, &tags).then_some((group, tags))
    });
    try_join_all(owned.map(|(group, tags)| with_attributes(world, group, tags))).await
}

async fn with_attributes(
    world: &AwsWorld,
    group: elb::TargetGroup,
    tags: Tags,
) -> Result<Raw, Failure> {
    let call = world.clients.elb.describe_target_group_attributes();
    let call = call.set_target_group_arn(group.target_group_arn.clone());
    let answer = call.send().await;
    let answer = answer.classify_call("elasticloadbalancing:DescribeTargetGroupAttributes")?;
    let attributes = answer.attributes.unwrap_or_default().into_iter();
    Ok(Raw {
        group,
        attributes: attributes
            .filter_map(|one| Some((one.key?, one.value?)))
            .collect(),
        tags,
    })
}

pub(crate) fn observe(raw: &Raw, names: &Names) -> Option<Observed<Cloud>> {
    let group = &raw.group;
    let set = |key: &str| raw.attributes.get(key).map_or("", String::as_str);
    let protocol =
        |of: Option<&ProtocolEnum>| of.map_or_else(String::new, |one| one.as_str().to_owned());
    let target_group = LbTargetGroup {
        name: group.target_group_name()?.to_owned(),
        protocol: protocol(group.protocol()),
        port: group.port()?,
        vpc_id: names.reference::<Vpc>(group.vpc_id()?),
        connection_termination: set(TERMINATION) == "true",
        deregistration_delay_seconds: set(DELAY).parse().unwrap_or_default(),
        health_check: HealthCheck {
            healthy_threshold_count: group.healthy_threshold_count().unwrap_or_default(),
            health_check_interval_seconds: group
                .health_check_interval_seconds()
                .unwrap_or_default(),
            health_check_timeout_seconds: group.health_check_timeout_seconds().unwrap_or_default(),
            // `traffic-port`: the target's own.
            health_check_port: group.health_check_port().and_then(|port| port.parse().ok()),
            health_check_path: group.health_check_path().map(ToOwned::to_owned),
            health_check_protocol: protocol(group.health_check_protocol()),
            unhealthy_threshold_count: group.unhealthy_threshold_count().unwrap_or_default(),
        },
        tags: raw.tags.clone(),
    };
    Some(observed_item(target_group, group.target_group_arn()?))
}

impl Verbs for LbTargetGroup {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        let call = world.clients.elb.describe_target_groups();
        let answer = call.names(&want.name).send().await.classify_call(DESCRIBE);
        let found = none_if_absent(answer)?.and_then(|answer| answer.target_groups);
        let found = found.unwrap_or_default();
        let arns: Vec<String> = found
            .iter()
            .filter_map(|one| one.target_group_arn.clone())
            .collect();
        let tags = lb_tags::fetch(&world.clients, &arns).await?;
        let taken = !found.is_empty();
        let raw = read_owned_attributes(world, found, &tags).await?;
        let names = Names::for_references(&want.refs(), refs);
        match raw.first() {
            None if taken => {
                let what = format!("the target group {}", want.name);
                Err(not_ours(world, DESCRIBE, &what))
            }
            raw => Ok(raw.and_then(|raw| observe(raw, &names))),
        }
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        let Some(have) = have else {
            let arn = create(world, want, refs).await?;
            // What AWS gives a new target group.
            let fresh = Self {
                connection_termination: false,
                deregistration_delay_seconds: 300,
                ..want.clone()
            };
            after_effect(change(world, &arn, &fresh, want).await)?;
            return Ok(created_ready(arn));
        };
        change(world, have.physical, have.resource, want).await?;
        retag(world, have.physical, &have.resource.tags, &want.tags).await?;
        Ok(created_ready(have.physical))
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let call = world.clients.elb.delete_target_group();
        let call = call.target_group_arn(have.physical).send();
        call.await
            .classify_call("elasticloadbalancing:DeleteTargetGroup")?;
        Ok(Removed::Done)
    }
}

/// Answers of a check by HTTP that count as healthy: AWS' own for network load balancers. A group that had a check by TCP has none,
/// and kOps' notes say that path and matcher have to be set with the protocol.
fn healthy_codes(health: &HealthCheck) -> Option<Matcher> {
    let by_http = health.health_check_protocol.starts_with("HTTP");
    by_http.then(|| Matcher::builder().http_code("200-399").build())
}

async fn create(world: &AwsWorld, want: &LbTargetGroup, refs: &Refs) -> Result<String, Failure> {
    const CALL: &str = "elasticloadbalancing:CreateTargetGroup";
    let health = &want.health_check;
    let call = world
        .clients
        .elb
        .create_target_group()
        .name(&want.name)
        .protocol(ProtocolEnum::from(want.protocol.as_str()))
        .port(want.port)
        .vpc_id(physical(refs, &want.vpc_id, CALL)?)
        .healthy_threshold_count(health.healthy_threshold_count)
        .health_check_interval_seconds(health.health_check_interval_seconds)
        .health_check_timeout_seconds(health.health_check_timeout_seconds)
        .health_check_port(checked_port(health))
        .set_health_check_path(health.health_check_path.clone())
        .health_check_protocol(ProtocolEnum::from(health.health_check_protocol.as_str()))
        .set_matcher(healthy_codes(health))
        .unhealthy_threshold_count(health.unhealthy_threshold_count)
        .set_tags(Some(write_tags(&want.tags)));
    let groups = call.send().await.classify_creation(CALL)?.target_groups;
    let group = groups.and_then(|all| all.into_iter().next());
    require_answer(group.and_then(|one| one.target_group_arn), CALL)
}

async fn change(
    world: &AwsWorld,
    arn: &str,
    have: &LbTargetGroup,
    want: &LbTargetGroup,
) -> Result<(), Failure> {
    let health = &want.health_check;
    if have.health_check != *health {
        let call = world
            .clients
            .elb
            .modify_target_group()
            .target_group_arn(arn)
            .healthy_threshold_count(health.healthy_threshold_count)
            .health_check_interval_seconds(health.health_check_interval_seconds)
            .health_check_timeout_seconds(health.health_check_timeout_seconds)
            .health_check_port(checked_port(health))
            .set_health_check_path(health.health_check_path.clone())
            .health_check_protocol(ProtocolEnum::from(health.health_check_protocol.as_str()))
            .set_matcher(healthy_codes(health))
            .unhealthy_threshold_count(health.unhealthy_threshold_count);
        call.send()
            .await
            .classify_call("elasticloadbalancing:ModifyTargetGroup")?;
    }
    let before = attribute_values(have);
    let changed = attribute_values(want)
        .into_iter()
        .filter(|one| !before.contains(one));
    let changed: Vec<TargetGroupAttribute> = changed
        .map(|(key, value)| {
            TargetGroupAttribute::builder()
                .key(key)
                .value(value)
                .build()
        })
        .collect();
    if !changed.is_empty() {
        let call = world.clients.elb.modify_target_group_attributes();
        let call = call.target_group_arn(arn);
        let done = call.set_attributes(Some(changed)).send().await;
        done.classify_call("elasticloadbalancing:ModifyTargetGroupAttributes")?;
    }
    Ok(())
}

/// As AWS writes it.
fn checked_port(health: &HealthCheck) -> String {
    let port = health.health_check_port;
    port.map_or_else(|| "traffic-port".to_owned(), |port| port.to_string())
}

fn attribute_values(of: &LbTargetGroup) -> [(&'static str, String); 2] {
    [
        (TERMINATION, of.connection_termination.to_string()),
        (DELAY, of.deregistration_delay_seconds.to_string()),
    ]
}
