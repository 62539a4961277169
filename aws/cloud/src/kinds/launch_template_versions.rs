//! Old versions of a launch template, and the node configurations that only they name: kept while any instance
//! could still boot from them.

use super::ec2::filter;
use super::launch_template_data::decode_user_data;
use crate::kinds::s3_object;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, item_failure};
use aws_sdk_ec2::types::{LaunchTemplateErrorCode, LaunchTemplateVersion};
use cloud::LaunchTemplate;
use engine::Failure;
use node::names::INSTANCE_GROUP_TAG;
use std::collections::BTreeSet;

/// Versions that stay whether used or not.
const KEPT: usize = 10;

/// How many versions one call deletes at most.
const AT_ONCE: usize = 200;

/// How many changes pass between two looks at old versions.
const EVERY: i64 = 5;

/// Deletes the versions beyond the newest ten that neither the group nor any instance uses, then the node
/// configurations that no version names any more. Now and then only: it costs four calls.
pub(super) async fn prune_versions(
    world: &AwsWorld,
    template: &str,
    want: &LaunchTemplate,
    newest: i64,
) -> Result<(), Failure> {
    if newest <= i64::try_from(KEPT).unwrap_or(i64::MAX) || newest % EVERY != 0 {
        return Ok(());
    }
    let mut versions = list_versions(world, template).await?;
    versions.sort_by_key(|version| std::cmp::Reverse(version.version_number));
    let used = used_versions(world, template, &want.launch_template_name).await?;
    let number = |version: &LaunchTemplateVersion| version.version_number.unwrap_or_default();
    let (kept, old): (Vec<_>, Vec<_>) = versions
        .into_iter()
        .enumerate()
        .partition(|(at, version)| *at < KEPT || used.contains(&number(version)));
    let old: Vec<i64> = old.iter().map(|(_, version)| number(version)).collect();
    if old.is_empty() {
        return Ok(());
    }
    delete_versions(world, template, newest, &old).await?;
    let kept = kept.iter().filter_map(|(_, version)| {
        let data = version.launch_template_data()?.user_data()?;
        Some(decode_user_data(data))
    });
    match want.tags.get(INSTANCE_GROUP_TAG) {
        Some(group) => {
            s3_object::forget_configurations(world, group, &kept.collect::<Vec<_>>()).await
        }
        None => Ok(()),
    }
}

async fn list_versions(
    world: &AwsWorld,
    template: &str,
) -> Result<Vec<LaunchTemplateVersion>, Failure> {
    let call = world.clients.ec2.describe_launch_template_versions();
    let pages = call.launch_template_id(template).into_paginator();
    let found: Result<Vec<_>, _> = pages.items().send().collect().await;
    found.classify_call("ec2:DescribeLaunchTemplateVersions")
}

/// Versions that the group names or that an instance was launched from.
async fn used_versions(
    world: &AwsWorld,
    template: &str,
    group: &str,
) -> Result<BTreeSet<i64>, Failure> {
    let call = world.clients.autoscaling.describe_auto_scaling_groups();
    let answer = call.auto_scaling_group_names(group).send().await;
    let groups = answer.classify_call("autoscaling:DescribeAutoScalingGroups")?;
    let groups = groups.auto_scaling_groups.unwrap_or_default();
    let named = groups.iter().filter_map(|group| group.launch_template());
    let of_group = named.filter_map(|one| one.version());
    let mut used: BTreeSet<i64> = of_group.filter_map(|one| one.parse().ok()).collect();
    // AWS notes on each instance which version it came from.
    let call = world.clients.ec2.describe_instances();
    let call = call.filters(filter("tag:aws:ec2launchtemplate:id", template));
    let pages = call.into_paginator().items().send();
    let found: Result<Vec<_>, _> = pages.collect().await;
    let reservations = found.classify_call("ec2:DescribeInstances")?;
    let instances = reservations
        .iter()
        .flat_map(aws_sdk_ec2::types::Reservation::instances);
    let tags = instances.flat_map(aws_sdk_ec2::types::Instance::tags);
    let from = tags.filter(|tag| tag.key() == Some("aws:ec2launchtemplate:version"));
    used.extend(from.filter_map(|tag| tag.value()?.parse::<i64>().ok()));
    let members = groups
        .iter()
        .flat_map(aws_sdk_autoscaling::types::AutoScalingGroup::instances);
    let from = members.filter_map(|one| one.launch_template()?.version()?.parse::<i64>().ok());
    used.extend(from);
    Ok(used)
}

/// The default version cannot be deleted; nothing of ours uses it, so it moves to the newest.
async fn delete_versions(
    world: &AwsWorld,
    template: &str,
    newest: i64,
    old: &[i64],
) -> Result<(), Failure> {
    let call = world.clients.ec2.modify_launch_template();
    let call = call
        .launch_template_id(template)
        .default_version(newest.to_string());
    call.send()
        .await
        .classify_call("ec2:ModifyLaunchTemplate")?;
    for some in old.chunks(AT_ONCE) {
        delete_some(world, template, some).await?;
    }
    Ok(())
}

/// A version that stays is part of a successful answer. Its node configuration must not go before it.
async fn delete_some(world: &AwsWorld, template: &str, some: &[i64]) -> Result<(), Failure> {
    const CALL: &str = "ec2:DeleteLaunchTemplateVersions";
    let versions = some.iter().map(ToString::to_string).collect();
    let call = world.clients.ec2.delete_launch_template_versions();
    let call = call
        .launch_template_id(template)
        .set_versions(Some(versions));
    let answer = call.send().await.classify_call(CALL)?;
    for stays in answer.unsuccessfully_deleted_launch_template_versions() {
        let error = stays.response_error();
        let code = error.and_then(|error| error.code());
        if let Some(
            LaunchTemplateErrorCode::LaunchTemplateIdDoesNotExist
            | LaunchTemplateErrorCode::LaunchTemplateVersionDoesNotExist,
        ) = code
        {
            continue;
        }
        let code = code.map_or("", LaunchTemplateErrorCode::as_str);
        let message = error.and_then(|error| error.message());
        return Err(item_failure(CALL, code, message));
    }
    Ok(())
}
