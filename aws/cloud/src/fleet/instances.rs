//! Instances as EC2 describes them, with what Auto Scaling says of each.

use super::{Instance, ScalingGroup, TemplateVersion};
use crate::CloudClients;
use aws_client::failure::Classify;
use aws_sdk_ec2::types::{self as ec2, Filter};
use engine::Failure;
use node::names::INSTANCE_GROUP_TAG;
use std::collections::BTreeMap;

/// The most that AWS gives at once.
const PAGE: i32 = 1000;

/// Every state but `terminated`: EC2 describes what is gone for about an hour.
const STATES: [&str; 5] = ["pending", "running", "shutting-down", "stopping", "stopped"];

/// On instances that Auto Scaling launched.
const SCALING_GROUP_TAG: &str = "aws:autoscaling:groupName";
/// Where AWS notes what an instance was launched from.
const TEMPLATE_TAG: &str = "aws:ec2launchtemplate:id";
const VERSION_TAG: &str = "aws:ec2launchtemplate:version";

pub(super) async fn fetch(clients: &CloudClients, owned: &str) -> Result<Vec<Instance>, Failure> {
    let owned = Filter::builder()
        .name(format!("tag:{owned}"))
        .values("owned");
    let states = Filter::builder()
        .name("instance-state-name")
        .set_values(Some(STATES.map(ToOwned::to_owned).to_vec()));
    let call = clients.ec2.describe_instances();
    let call = call.filters(owned.build()).filters(states.build());
    let pages = call.into_paginator().page_size(PAGE).items().send();
    let found: Result<Vec<ec2::Reservation>, _> = pages.collect().await;
    let found = found.called("ec2:DescribeInstances")?;
    let instances = found.iter().flat_map(ec2::Reservation::instances);
    Ok(instances.filter_map(read).collect())
}

fn read(raw: &ec2::Instance) -> Option<Instance> {
    let text = |value: Option<&str>| value.filter(|text| !text.is_empty()).map(str::to_owned);
    let tags: BTreeMap<&str, &str> = raw
        .tags()
        .iter()
        .filter_map(|tag| Some((tag.key()?, tag.value()?)))
        .collect();
    let tag = |key: &str| tags.get(key).map(|value| (*value).to_owned());
    let template = tag(TEMPLATE_TAG).zip(tag(VERSION_TAG));
    let reason = raw.state_reason().and_then(|reason| reason.message());
    Some(Instance {
        id: raw.instance_id()?.to_owned(),
        scaling_group: tag(SCALING_GROUP_TAG),
        instance_group: tag(INSTANCE_GROUP_TAG),
        zone: text(raw.placement().and_then(|one| one.availability_zone())).unwrap_or_default(),
        machine_type: raw
            .instance_type()
            .map(|kind| kind.as_str().to_owned())
            .unwrap_or_default(),
        image: text(raw.image_id()),
        state: raw.state()?.name()?.as_str().to_owned(),
        state_reason: text(reason),
        lifecycle: None,
        launched: raw.launch_time().map(aws_smithy_types::DateTime::secs),
        private_ip: text(raw.private_ip_address()),
        public_ip: text(raw.public_ip_address()),
        private_dns_name: text(raw.private_dns_name()),
        template: template.map(|(id, version)| TemplateVersion { id, version }),
        up_to_date: None,
    })
}

/// Instances of the cluster's groups: what EC2 found, completed with what Auto Scaling says, and members that EC2 does
/// not show (yet). What belongs to no group, a NAT instance for example, is left out.
pub(super) fn joined(
    found: Vec<Instance>,
    members: &[Instance],
    groups: &[ScalingGroup],
) -> Vec<Instance> {
    let member = |id: &str| members.iter().find(|member| member.id == id);
    let known = |id: &str| found.iter().any(|instance| instance.id == id);
    let unseen: Vec<Instance> = members
        .iter()
        .filter(|member| !known(&member.id))
        .cloned()
        .collect();
    let seen = found.into_iter().filter_map(|mut instance| {
        // The tag says the group of old once an instance is detached from it.
        let member = member(&instance.id);
        instance.scaling_group = member.and_then(|member| member.scaling_group.clone());
        instance.lifecycle = member.and_then(|member| member.lifecycle.clone());
        let template = member.and_then(|member| member.template.clone());
        instance.template = template.or(instance.template);
        let group = member.and_then(|member| member.instance_group.clone());
        instance.instance_group = instance.instance_group.or(group);
        instance.instance_group.is_some().then_some(instance)
    });
    let mut all: Vec<Instance> = seen.chain(unseen).collect();
    for instance in &mut all {
        instance.up_to_date = up_to_date(instance, groups);
    }
    all.sort_by(|a, b| a.id.cmp(&b.id));
    all
}

/// Whether an instance was launched from what its instance group launches now.
fn up_to_date(instance: &Instance, groups: &[ScalingGroup]) -> Option<bool> {
    let group = groups.iter().find(|group| {
        Some(&group.name) == instance.scaling_group.as_ref()
            || (instance.scaling_group.is_none() && group.instance_group == instance.instance_group)
    })?;
    Some(group.template.as_ref()? == instance.template.as_ref()?)
}
