//! What machines that run were told at their launch: the user data of the versions of launch templates that they came
//! from. One paged call for each template that a machine came from.

use super::{Fleet, Instance};
use crate::Clients;
use crate::failure::{Classify, absent};
use crate::kinds::launch_template_data::decoded;
use futures::stream::{self, StreamExt, TryStreamExt};
use model::engine::Failure;
use std::collections::{BTreeMap, BTreeSet};

/// Templates that are asked for at once.
const AT_ONCE: usize = 8;

/// A machine that is there, and may run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// `i-...`.
    pub instance: String,
    /// Its user data; `None`: what it was launched from is not known, or is gone.
    pub user_data: Option<String>,
}

/// The user data of every machine that is not on its way out.
pub async fn told(clients: &Clients, fleet: &Fleet) -> Result<Vec<Told>, Failure> {
    let stays = |one: &&Instance| one.state != "shutting-down";
    let machines: Vec<&Instance> = fleet.instances.iter().filter(stays).collect();
    let from = machines.iter().filter_map(|one| one.template.as_ref());
    let templates: BTreeSet<&str> = from.map(|template| template.id.as_str()).collect();
    let versions: BTreeMap<&str, BTreeMap<String, String>> = stream::iter(templates)
        .map(async |id| Ok::<_, Failure>((id, versions(clients, id).await?)))
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    let told = machines.into_iter().map(|one| Told {
        instance: one.id.clone(),
        user_data: one.template.as_ref().and_then(|from| {
            let versions = versions.get(from.id.as_str())?;
            versions.get(&from.version).cloned()
        }),
    });
    Ok(told.collect())
}

/// User data by version; a version without any has the empty one.
async fn versions(clients: &Clients, template: &str) -> Result<BTreeMap<String, String>, Failure> {
    let call = clients.ec2.describe_launch_template_versions();
    let pages = call.launch_template_id(template).into_paginator();
    let found: Result<Vec<_>, _> = pages.items().send().collect().await;
    let found = absent(found.called("ec2:DescribeLaunchTemplateVersions"))?;
    let read = |version: aws_sdk_ec2::types::LaunchTemplateVersion| {
        let number = version.version_number()?.to_string();
        let data = version
            .launch_template_data()
            .and_then(|data| data.user_data());
        Some((number, decoded(data.unwrap_or_default())))
    };
    Ok(found
        .unwrap_or_default()
        .into_iter()
        .filter_map(read)
        .collect())
}
