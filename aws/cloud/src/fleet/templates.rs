//! Which version of a launch template a group launches and an instance came from.

use crate::CloudClients;
use aws_client::failure::Classify;
use aws_sdk_autoscaling::types::{AutoScalingGroup, LaunchTemplateSpecification};
use engine::Failure;
use fleet::TemplateVersion;
use std::collections::{BTreeMap, BTreeSet};

const LATEST: &str = "$Latest";
const DEFAULT: &str = "$Default";

/// Newest and default version of templates that are named by one of these words, by id.
pub(super) struct Newest(BTreeMap<String, (i64, i64)>);

/// What a group launches: its template, or that of its mixed instances policy.
pub(super) fn launch_specification(raw: &AutoScalingGroup) -> Option<&LaunchTemplateSpecification> {
    let mixed = raw.mixed_instances_policy();
    let mixed = mixed.and_then(|one| one.launch_template()?.launch_template_specification());
    raw.launch_template().or(mixed)
}

/// A version by its number.
pub(super) fn numbered_version(of: &LaunchTemplateSpecification) -> Option<TemplateVersion> {
    Some(TemplateVersion {
        id: of.launch_template_id()?.to_owned(),
        version: of.version().filter(|one| !one.starts_with('$'))?.to_owned(),
    })
}

/// Asks for the numbers behind `$Latest` and `$Default` (no version means the default), if a group says either. kctl's
/// own groups never do.
pub(super) async fn read_newest_versions(
    clients: &CloudClients,
    groups: &[AutoScalingGroup],
) -> Result<Newest, Failure> {
    let named = groups.iter().filter_map(launch_specification);
    let named = named.filter(|of| numbered_version(of).is_none());
    let ids: BTreeSet<&str> = named.filter_map(|of| of.launch_template_id()).collect();
    if ids.is_empty() {
        return Ok(Newest(BTreeMap::new()));
    }
    let ids = ids.into_iter().map(ToOwned::to_owned).collect();
    let call = clients.ec2.describe_launch_templates();
    let pages = call.set_launch_template_ids(Some(ids)).into_paginator();
    let found: Result<Vec<_>, _> = pages.items().send().collect().await;
    let found = found.classify_call("ec2:DescribeLaunchTemplates")?;
    let read = |one: aws_sdk_ec2::types::LaunchTemplate| {
        let versions = (one.latest_version_number?, one.default_version_number?);
        Some((one.launch_template_id?, versions))
    };
    Ok(Newest(found.into_iter().filter_map(read).collect()))
}

impl Newest {
    /// The version with its number.
    pub(super) fn resolve_version(
        &self,
        of: &LaunchTemplateSpecification,
    ) -> Option<TemplateVersion> {
        let id = of.launch_template_id()?;
        let version = match of.version() {
            Some(LATEST) => self.0.get(id)?.0.to_string(),
            Some(DEFAULT) | None => self.0.get(id)?.1.to_string(),
            Some(version) => version.to_owned(),
        };
        Some(TemplateVersion {
            id: id.to_owned(),
            version,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_versions_become_numbers() {
        let newest = Newest([("lt-1".to_owned(), (7, 3))].into());
        let version = |version: Option<&str>| {
            let of = LaunchTemplateSpecification::builder().launch_template_id("lt-1");
            let of = of.set_version(version.map(ToOwned::to_owned)).build();
            newest.resolve_version(&of).map(|of| of.version)
        };
        for (said, meant) in [
            (Some("$Latest"), "7"),
            (Some("$Default"), "3"),
            (None, "3"),
            (Some("5"), "5"),
        ] {
            assert_eq!(version(said).as_deref(), Some(meant));
        }
    }
}
