//! A launch template. A change is a new version; the Auto Scaling group names the version it launches.

use super::ec2::{filter, is_owned, owned_filter, read_tags, retag, tag_specification};
use super::launch_template_data::{launched_tags, parse_template_data, template_data_request};
use super::launch_template_versions::prune_versions;
use super::{
    Found, Have, Verbs, after_effect, client_token, created_ready, desired_by_name, not_ours,
    observed_item, rfc3339_time,
};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, require_answer};
use aws_sdk_ec2::types::{self as ec2, Filter, ResourceType};
use cloud::{Cloud, Kind, LaunchTemplate, Tags};
use engine::{Failure, Observed, Put, Refs, Removed};
use std::collections::BTreeMap;

/// The most that AWS gives at once.
const PAGE: i32 = 200;

/// Attribute: the newest version's number.
const LATEST: &str = "latest_version";

const DESCRIBE: &str = "ec2:DescribeLaunchTemplates";

/// A template and its newest version.
pub(crate) struct Raw {
    template: ec2::LaunchTemplate,
    newest: ec2::LaunchTemplateVersion,
}

/// Templates by tag and the newest versions of all templates, side by side: AWS has no tags on versions.
pub(crate) async fn fetch(world: &AwsWorld) -> Result<Vec<Raw>, Failure> {
    let versions = world.clients.ec2.describe_launch_template_versions();
    let versions = versions.versions("$Latest").into_paginator();
    let versions = versions.page_size(PAGE).items().send();
    let versions = versions.collect::<Result<Vec<_>, _>>();
    let (templates, versions) =
        futures::join!(describe_templates(world, owned_filter(world)), versions);
    let versions = versions.classify_call("ec2:DescribeLaunchTemplateVersions")?;
    let mut newest: BTreeMap<Option<String>, _> = versions
        .into_iter()
        .map(|version| (version.launch_template_id.clone(), version))
        .collect();
    let mut all = Vec::new();
    for template in templates? {
        let newest = newest.remove(&template.launch_template_id);
        all.push(match newest {
            Some(newest) => Raw { template, newest },
            None => with_newest(world, template).await?,
        });
    }
    Ok(all)
}

async fn describe_templates(
    world: &AwsWorld,
    by: Filter,
) -> Result<Vec<ec2::LaunchTemplate>, Failure> {
    let call = world.clients.ec2.describe_launch_templates().filters(by);
    let pages = call.into_paginator().page_size(PAGE).items().send();
    let found: Result<Vec<_>, _> = pages.collect().await;
    found.classify_call(DESCRIBE)
}

async fn with_newest(world: &AwsWorld, template: ec2::LaunchTemplate) -> Result<Raw, Failure> {
    const CALL: &str = "ec2:DescribeLaunchTemplateVersions";
    let call = world.clients.ec2.describe_launch_template_versions();
    let call = call.set_launch_template_id(template.launch_template_id.clone());
    let answer = call
        .versions("$Latest")
        .send()
        .await
        .classify_creation(CALL)?;
    let versions = answer.launch_template_versions.unwrap_or_default();
    let newest = require_answer(versions.into_iter().next(), CALL)?;
    Ok(Raw { template, newest })
}

pub(crate) fn observe(world: &AwsWorld, raw: &Raw, names: &Names) -> Option<Observed<Cloud>> {
    let name = raw.template.launch_template_name()?;
    let data = raw.newest.launch_template_data()?;
    let tags = telling_tags(world, name, own_tags(world, raw), &launched_tags(data));
    let mut seen = observed_item(
        parse_template_data(name, data, tags, names)?,
        raw.template.launch_template_id()?,
    );
    seen.attrs = latest_version_attr(raw.newest.version_number()?);
    seen.created = rfc3339_time(raw.template.create_time());
    Some(seen)
}

/// The tags of the template itself that are the cluster's.
fn own_tags(world: &AwsWorld, raw: &Raw) -> Tags {
    let scope = &world.scope;
    scope.own_tags(LaunchTemplate::TYPE, read_tags(raw.template.tags()))
}

fn latest_version_attr(version: i64) -> BTreeMap<String, String> {
    BTreeMap::from([(LATEST.to_owned(), version.to_string())])
}

/// The template and all that it launches should have the same tags. If any of them has others than are wanted,
/// those are the ones to tell about.
fn telling_tags(world: &AwsWorld, name: &str, own: Tags, launched: &[Tags]) -> Tags {
    match desired_by_name::<LaunchTemplate>(world, name) {
        Some(wanted) => {
            let mut all = std::iter::once(&own).chain(launched);
            all.find(|tags| **tags != wanted.tags)
                .unwrap_or(&own)
                .clone()
        }
        None => own,
    }
}

impl Verbs for LaunchTemplate {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        let name = &want.launch_template_name;
        let Some(raw) = current_template(world, name).await? else {
            return Ok(None);
        };
        if !is_owned(world, &read_tags(raw.template.tags())) {
            let what = format!("the launch template {name}");
            return Err(not_ours(world, DESCRIBE, &what));
        }
        let names = Names::for_references(&want.refs(), refs);
        Ok(observe(world, &raw, &names))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        let Some(have) = have else {
            return create(world, want, refs).await;
        };
        let raw = current_template(world, &want.launch_template_name).await?;
        let launches = raw
            .as_ref()
            .and_then(|raw| matching_version(&have, raw, want, refs));
        let version = match launches {
            // Tags of the template itself are no reason for instances to be replaced.
            Some(version) => version,
            None => next_version(world, &have, want, refs).await?,
        };
        let own = raw.map(|raw| own_tags(world, &raw)).unwrap_or_default();
        let done = retag(world, have.physical, &own, &want.tags).await;
        after_effect(done)?;
        after_effect(prune_versions(world, have.physical, want, version).await)?;
        Ok(Put {
            attrs: latest_version_attr(version),
            ..created_ready(have.physical)
        })
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let call = world.clients.ec2.delete_launch_template();
        let call = call.launch_template_id(have.physical).send();
        call.await.classify_call("ec2:DeleteLaunchTemplate")?;
        Ok(Removed::Done)
    }
}

/// The template of that name with its newest version.
async fn current_template(world: &AwsWorld, name: &str) -> Result<Option<Raw>, Failure> {
    let found = describe_templates(world, filter("launch-template-name", name)).await?;
    match found.into_iter().next() {
        Some(template) => Ok(Some(with_newest(world, template).await?)),
        None => Ok(None),
    }
}

/// The number of the newest version, if it launches what is wanted. One that is older than what was observed is a late read.
fn matching_version(
    have: &Have<'_, LaunchTemplate>,
    raw: &Raw,
    want: &LaunchTemplate,
    refs: &Refs,
) -> Option<i64> {
    let version = raw.newest.version_number()?;
    let observed: i64 = have.attrs.get(LATEST)?.parse().ok()?;
    let data = raw.newest.launch_template_data()?;
    let names = Names::for_references(&want.refs(), refs);
    let launched =
        parse_template_data(&want.launch_template_name, data, want.tags.clone(), &names)?;
    let tags_match = launched_tags(data).iter().all(|tags| *tags == want.tags);
    (version >= observed && launched == *want && tags_match).then_some(version)
}

async fn create(world: &AwsWorld, want: &LaunchTemplate, refs: &Refs) -> Result<Put, Failure> {
    const CALL: &str = "ec2:CreateLaunchTemplate";
    let call = world
        .clients
        .ec2
        .create_launch_template()
        .launch_template_name(&want.launch_template_name)
        .launch_template_data(template_data_request(want, refs, CALL)?)
        .tag_specifications(tag_specification(ResourceType::LaunchTemplate, &want.tags));
    let template = require_answer(
        call.send().await.classify_creation(CALL)?.launch_template,
        CALL,
    )?;
    Ok(Put {
        attrs: latest_version_attr(template.latest_version_number().unwrap_or(1)),
        ..created_ready(require_answer(template.launch_template_id, CALL)?)
    })
}

/// The token names the version it follows, so that a repeated call makes one version only.
async fn next_version(
    world: &AwsWorld,
    have: &Have<'_, LaunchTemplate>,
    want: &LaunchTemplate,
    refs: &Refs,
) -> Result<i64, Failure> {
    const CALL: &str = "ec2:CreateLaunchTemplateVersion";
    let before = have.attrs.get(LATEST).map_or("", String::as_str);
    let call = world
        .clients
        .ec2
        .create_launch_template_version()
        .client_token(client_token(world, &want.id(), &[have.physical, before]))
        .launch_template_id(have.physical)
        .launch_template_data(template_data_request(want, refs, CALL)?);
    let version = call
        .send()
        .await
        .classify_creation(CALL)?
        .launch_template_version;
    require_answer(version.and_then(|one| one.version_number), CALL)
}
