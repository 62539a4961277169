//! Auto Scaling groups and their members.

use super::templates::{self, Newest};
use crate::CloudClients;
use crate::kinds::autoscaling::is_going;
use aws_client::failure::Classify;
use aws_sdk_autoscaling::types::{self as asg, AutoScalingGroup, Filter};
use engine::Failure;
use fleet::{Instance, ScalingGroup};
use node::names::INSTANCE_GROUP_TAG;
use std::collections::BTreeMap;

/// The most that AWS gives at once.
const PAGE: i32 = 100;

pub(super) async fn fetch(
    clients: &CloudClients,
    owned: &str,
) -> Result<Vec<AutoScalingGroup>, Failure> {
    let owned = Filter::builder()
        .name(format!("tag:{owned}"))
        .values("owned")
        .build();
    let call = clients.autoscaling.describe_auto_scaling_groups();
    let pages = call.filters(owned).into_paginator().page_size(PAGE);
    let found: Result<Vec<AutoScalingGroup>, _> = pages.items().send().collect().await;
    found.classify_call("autoscaling:DescribeAutoScalingGroups")
}

pub(super) fn parse_group(raw: &AutoScalingGroup, newest: &Newest) -> Option<ScalingGroup> {
    if is_going(raw) {
        return None;
    }
    let tag =
        |tag: &&aws_sdk_autoscaling::types::TagDescription| tag.key() == Some(INSTANCE_GROUP_TAG);
    let suspended = raw.suspended_processes().iter();
    Some(ScalingGroup {
        name: raw.auto_scaling_group_name()?.to_owned(),
        instance_group: raw
            .tags()
            .iter()
            .find(tag)
            .and_then(|tag| tag.value())
            .map(ToOwned::to_owned),
        min: raw.min_size()?,
        desired: raw.desired_capacity()?,
        max: raw.max_size()?,
        template: templates::launch_specification(raw).and_then(|of| newest.resolve_version(of)),
        suspended: suspended
            .filter_map(|one| one.process_name().map(ToOwned::to_owned))
            .collect(),
        target_groups: raw.target_group_arns().to_vec(),
    })
}

/// The members of all groups and of their warm pools with what Auto Scaling says of each: what EC2 does not say, and enough to show a
/// member that EC2 does not list yet.
pub(super) fn group_members(
    described: &[AutoScalingGroup],
    warm: &BTreeMap<String, Vec<asg::Instance>>,
    groups: &[ScalingGroup],
) -> Vec<Instance> {
    let mut all = Vec::new();
    for raw in described {
        let group = raw.auto_scaling_group_name();
        let known = groups.iter().find(|one| Some(one.name.as_str()) == group);
        let warm = group.and_then(|group| warm.get(group));
        for member in raw.instances().iter().chain(warm.into_iter().flatten()) {
            let template = member
                .launch_template()
                .and_then(templates::numbered_version);
            all.push(Instance {
                id: member.instance_id().unwrap_or_default().to_owned(),
                scaling_group: group.map(ToOwned::to_owned),
                instance_group: known.and_then(|group| group.instance_group.clone()),
                zone: member.availability_zone().unwrap_or_default().to_owned(),
                machine_type: member.instance_type().unwrap_or_default().to_owned(),
                lifecycle: member
                    .lifecycle_state()
                    .map(|state| state.as_str().to_owned()),
                template,
                ..Instance::default()
            });
        }
    }
    all
}
