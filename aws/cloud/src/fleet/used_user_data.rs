//! The user data of running instances, and what a group would launch the next one with: the user data of versions of launch
//! templates. One paged call for each template.

use crate::CloudClients;
use crate::kinds::launch_template_data::decode_user_data;
use aws_client::failure::{Classify, none_if_absent};
use engine::Failure;
use fleet::{AwsFleet, Instance, TemplateVersion};
use futures::stream::{self, StreamExt, TryStreamExt};
use std::collections::{BTreeMap, BTreeSet};

/// Templates that are asked for at once.
const AT_ONCE: usize = 8;

/// User data that an instance was launched with, or that an Auto Scaling group launches the next one with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedUserData {
    /// `i-...`, or the name of the Auto Scaling group.
    pub name: String,
    /// The user data; `None`: what it comes from is not known, or is gone.
    pub user_data: Option<String>,
    /// The image of the launch template version.
    pub image: Option<String>,
    /// The instance type of the launch template version.
    pub instance_type: Option<String>,
}

/// The user data of every instance that is not on its way out.
pub async fn user_data_of_instances(
    clients: &CloudClients,
    fleet: &AwsFleet,
) -> Result<Vec<UsedUserData>, Failure> {
    let stays = |one: &&Instance| one.state != "shutting-down";
    let instances = fleet.instances.iter().filter(stays);
    user_data(clients, instances.map(|one| (&one.id, &one.template))).await
}

/// The user data of the instance that each group would launch now.
pub async fn user_data_of_groups(
    clients: &CloudClients,
    fleet: &AwsFleet,
) -> Result<Vec<UsedUserData>, Failure> {
    let groups = fleet.scaling_groups.iter();
    user_data(clients, groups.map(|one| (&one.name, &one.template))).await
}

async fn user_data<'a>(
    clients: &CloudClients,
    launched: impl Iterator<Item = (&'a String, &'a Option<TemplateVersion>)> + Clone,
) -> Result<Vec<UsedUserData>, Failure> {
    let from = launched.clone().filter_map(|(_, from)| from.as_ref());
    let templates: BTreeSet<&str> = from.map(|template| template.id.as_str()).collect();
    let template_versions: BTreeMap<&str, BTreeMap<String, LaunchedWith>> = stream::iter(templates)
        .map(async |id| Ok::<_, Failure>((id, launched_by_version(clients, id).await?)))
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    let used = launched.map(|(name, from)| {
        let found = from.as_ref().and_then(|from| {
            let template_versions = template_versions.get(from.id.as_str())?;
            template_versions.get(&from.version).cloned()
        });
        let (user_data, image, instance_type) = match found {
            Some(found) => (Some(found.user_data), found.image, found.instance_type),
            None => (None, None, None),
        };
        UsedUserData {
            name: name.clone(),
            user_data,
            image,
            instance_type,
        }
    });
    Ok(used.collect())
}

/// What a version of a launch template says; a version without user data has the empty one.
#[derive(Clone)]
struct LaunchedWith {
    user_data: String,
    image: Option<String>,
    instance_type: Option<String>,
}

async fn launched_by_version(
    clients: &CloudClients,
    template: &str,
) -> Result<BTreeMap<String, LaunchedWith>, Failure> {
    let call = clients.ec2.describe_launch_template_versions();
    let pages = call.launch_template_id(template).into_paginator();
    let found: Result<Vec<_>, _> = pages.items().send().collect().await;
    let found = none_if_absent(found.classify_call("ec2:DescribeLaunchTemplateVersions"))?;
    let read = |version: aws_sdk_ec2::types::LaunchTemplateVersion| {
        let number = version.version_number()?.to_string();
        let data = version.launch_template_data();
        let user_data = data.and_then(|data| data.user_data());
        let instance_type = data.and_then(|data| data.instance_type());
        let launched = LaunchedWith {
            user_data: decode_user_data(user_data.unwrap_or_default()),
            image: data.and_then(|data| data.image_id()).map(str::to_owned),
            instance_type: instance_type.map(|one| one.as_str().to_owned()),
        };
        Some((number, launched))
    };
    Ok(found
        .unwrap_or_default()
        .into_iter()
        .filter_map(read)
        .collect())
}
