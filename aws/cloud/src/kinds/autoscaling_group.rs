//! An Auto Scaling group.

use super::autoscaling::{is_going, read_tags, write_tags};
use super::autoscaling_group_update::{processes_and_metrics, update, what_is_launched};
use super::mixed_instances;
use super::{
    Found, Have, Verbs, after_effect, created_ready, not_ours, observed_item, physical_ids,
    rfc3339_time,
};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::Classify;
use aws_sdk_autoscaling::types::{self as asg, Filter, LaunchTemplateSpecification};
use cloud::{
    AutoscalingGroup, Cloud, Kind, LaunchTemplate, LaunchTemplateRef, LbTargetGroup, Subnet,
};
use engine::{Failure, Observed, Put, Refs, Removed, Text};
use node::names::HOOKS_TAG;

const DESCRIBE: &str = "autoscaling:DescribeAutoScalingGroups";

/// The most that AWS gives at once.
const PAGE: i32 = 100;

pub(crate) async fn fetch(world: &AwsWorld) -> Result<Vec<asg::AutoScalingGroup>, Failure> {
    let owned = Filter::builder()
        .name(format!("tag:{}", world.scope.owned_tag()))
        .values("owned")
        .build();
    let call = world.clients.autoscaling.describe_auto_scaling_groups();
    let pages = call.filters(owned).into_paginator().page_size(PAGE);
    let found: Result<Vec<_>, _> = pages.items().send().collect().await;
    found.classify_call(DESCRIBE)
}

pub(super) async fn fetch_one(
    world: &AwsWorld,
    name: &str,
) -> Result<Option<asg::AutoScalingGroup>, Failure> {
    let call = world.clients.autoscaling.describe_auto_scaling_groups();
    let answer = call.auto_scaling_group_names(name).send().await;
    let groups = answer.classify_call(DESCRIBE)?.auto_scaling_groups;
    Ok(groups.and_then(|groups| groups.into_iter().next()))
}

pub(crate) fn observe(raw: &asg::AutoScalingGroup, names: &Names) -> Option<Observed<Cloud>> {
    let name = raw.auto_scaling_group_name()?;
    if is_going(raw) {
        return None;
    }
    let of_group = raw.target_group_arns().iter().map(String::as_str);
    let subnets = raw.vpc_zone_identifier().unwrap_or_default().split(',');
    let metrics = raw.enabled_metrics().iter().filter_map(|one| one.metric());
    let suspended = raw.suspended_processes().iter();
    let group = AutoscalingGroup {
        auto_scaling_group_name: name.to_owned(),
        capacity_rebalance: raw.capacity_rebalance().unwrap_or_default(),
        enabled_metrics: sorted_strings(metrics),
        launch_template: launch_template_of(raw, names),
        load_balancer_names: sorted_strings(raw.load_balancer_names().iter().map(String::as_str)),
        max_instance_lifetime: raw.max_instance_lifetime().unwrap_or_default(),
        max_size: raw.max_size()?,
        min_size: raw.min_size()?,
        mixed_instances_policy: raw.mixed_instances_policy().map(mixed_instances::read),
        new_instances_protected_from_scale_in: raw
            .new_instances_protected_from_scale_in()
            .unwrap_or_default(),
        suspended_processes: sorted_strings(suspended.filter_map(|one| one.process_name())),
        tags: read_tags(raw.tags()),
        target_group_arns: names.references::<LbTargetGroup>(of_group),
        vpc_zone_identifier: names
            .references::<Subnet>(subnets.map(str::trim).filter(|one| !one.is_empty())),
    };
    Some(Observed {
        created: rfc3339_time(raw.created_time()),
        ..observed_item(group, name)
    })
}

/// A group that mixes instance types carries its template inside the policy.
fn launch_template_of(raw: &asg::AutoScalingGroup, names: &Names) -> LaunchTemplateRef {
    let mixed = raw.mixed_instances_policy();
    let mixed = mixed.and_then(|one| one.launch_template()?.launch_template_specification());
    let of = raw.launch_template().or(mixed);
    let id = of
        .and_then(LaunchTemplateSpecification::launch_template_id)
        .unwrap_or_default();
    let version = of.and_then(LaunchTemplateSpecification::version);
    LaunchTemplateRef {
        launch_template_id: names.reference::<LaunchTemplate>(id),
        version: Text::literal(version.unwrap_or_default()),
    }
}

fn sorted_strings<'a>(items: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut items: Vec<String> = items.map(ToOwned::to_owned).collect();
    items.sort();
    items
}

impl Verbs for AutoscalingGroup {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        let Some(raw) = fetch_one(world, &want.auto_scaling_group_name).await? else {
            return Ok(None);
        };
        let owned = world.scope.owned_tag();
        let ours = |tag: &asg::TagDescription| tag.key() == Some(&owned);
        if !is_going(&raw) && !raw.tags().iter().any(ours) {
            let what = format!("the Auto Scaling group {}", want.auto_scaling_group_name);
            return Err(not_ours(world, DESCRIBE, &what));
        }
        Ok(observe(&raw, &Names::for_references(&want.refs(), refs)))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        let made = created_ready(&want.auto_scaling_group_name);
        if let Some(have) = have {
            update(world, have.resource, want, refs).await?;
            return Ok(made);
        }
        create(world, want, refs).await?;
        // What AWS gives a new group.
        let fresh = Self {
            enabled_metrics: Vec::new(),
            suspended_processes: Vec::new(),
            ..want.clone()
        };
        after_effect(processes_and_metrics(world, &fresh, want).await)?;
        Ok(made)
    }

    /// The instances of a cluster that goes end at once. A group that a cluster loses shrinks first: then its lifecycle hook has
    /// its instances drained. That ends no instance that is protected, nor any while Terminate is suspended.
    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let group = have.resource;
        let stays = group.new_instances_protected_from_scale_in
            || group
                .suspended_processes
                .iter()
                .any(|one| one == "Terminate");
        if world.scope.is_deletion() || stays {
            return delete(world, have.physical).await;
        }
        let call = world.clients.autoscaling.update_auto_scaling_group();
        let call = call
            .auto_scaling_group_name(have.physical)
            .min_size(0)
            .max_size(0)
            .desired_capacity(0);
        let done = call.send().await;
        match done.classify_call("autoscaling:UpdateAutoScalingGroup") {
            Err(failure) if is_absent(&failure) => Ok(Removed::Done),
            Err(failure) => Err(failure),
            Ok(_) => Ok(Removed::Waiting(
                "its instances to be drained and to end".to_owned(),
            )),
        }
    }

    async fn gone(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        match fetch_one(world, have.physical).await? {
            // AWS gives a status only to a group that is being deleted.
            Some(group) if group.instances().is_empty() && group.status().is_none() => {
                delete(world, have.physical).await
            }
            Some(_) => Ok(deletion_pending()),
            None => Ok(Removed::Done),
        }
    }
}

async fn delete(world: &AwsWorld, name: &str) -> Result<Removed, Failure> {
    let call = world.clients.autoscaling.delete_auto_scaling_group();
    let call = call.auto_scaling_group_name(name).force_delete(true);
    let done = call.send().await;
    match done.classify_call("autoscaling:DeleteAutoScalingGroup") {
        Err(failure) if is_absent(&failure) => Ok(Removed::Done),
        Err(failure) => Err(failure),
        Ok(_) => Ok(deletion_pending()),
    }
}

/// Auto Scaling has one code for every invalid request, this one among them.
pub(super) fn is_absent(failure: &Failure) -> bool {
    failure.code == "ValidationError" && failure.message.contains("not found")
}

fn deletion_pending() -> Removed {
    Removed::Waiting("its instances to end".to_owned())
}

async fn create(world: &AwsWorld, want: &AutoscalingGroup, refs: &Refs) -> Result<(), Failure> {
    const CALL: &str = "autoscaling:CreateAutoScalingGroup";
    let lifetime = Some(want.max_instance_lifetime).filter(|seconds| *seconds > 0);
    let groups = physical_ids(refs, &want.target_group_arns, CALL)?;
    let launch = what_is_launched(want, refs, CALL)?;
    // The digest of the hooks follows the hooks.
    let tags = want.tags.iter().filter(|tag| tag.key != HOOKS_TAG);
    let call = world
        .clients
        .autoscaling
        .create_auto_scaling_group()
        .auto_scaling_group_name(&want.auto_scaling_group_name)
        .capacity_rebalance(want.capacity_rebalance)
        .set_launch_template(launch.template)
        .set_mixed_instances_policy(launch.policy)
        .set_load_balancer_names(none_if_empty(want.load_balancer_names.clone()))
        .set_max_instance_lifetime(lifetime)
        .max_size(want.max_size)
        .min_size(want.min_size)
        .new_instances_protected_from_scale_in(want.new_instances_protected_from_scale_in)
        .set_tags(Some(write_tags(&want.auto_scaling_group_name, tags)))
        .set_target_group_arns(none_if_empty(groups))
        .vpc_zone_identifier(physical_ids(refs, &want.vpc_zone_identifier, CALL)?.join(","));
    call.send().await.classify_creation(CALL).map(drop)
}

fn none_if_empty<T>(items: Vec<T>) -> Option<Vec<T>> {
    Some(items).filter(|items| !items.is_empty())
}
