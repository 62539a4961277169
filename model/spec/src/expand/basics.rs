//! The first defaults: Kubernetes version, state store, account and region.

use super::fill::fill;
use super::{Context, Findings};
use crate::api::authorization::{AuthorizationSpec, RBACAuthorizationSpec};
use crate::api::cluster::ClusterSpec;
use crate::catalog::{DEFAULT_MINOR, recommended_patch};
use crate::validate::subnets::region_of;
use crate::validate::versions::{NEWEST_MINOR, OLDEST_MINOR, Version};
use cloud::facts::Facts;
use full::{Placement, StateLocation};

/// The Kubernetes version of the spec; `None`, with a finding, if kctl does not support it.
pub(super) fn kubernetes_version(spec: &ClusterSpec, findings: &mut Findings) -> Option<Version> {
    let default = recommended_patch(DEFAULT_MINOR).unwrap_or_default();
    let text = spec.kubernetes_version.as_deref().unwrap_or(default);
    let supported = |version: &Version| {
        version.major == 1 && (OLDEST_MINOR..=NEWEST_MINOR).contains(&version.minor)
    };
    let version = Version::parse(text).filter(supported);
    if version.is_none() {
        let message = format!("{text:?} is not a Kubernetes version that kctl knows");
        let newest = recommended_patch(NEWEST_MINOR).unwrap_or_default();
        let hint = format!("use 1.{OLDEST_MINOR}.0 to {newest}");
        findings.add_error("spec.kubernetesVersion", message, &hint);
    }
    version
}

/// Fills in the version, stores and authorization.
pub(super) fn complete_basics(spec: &mut ClusterSpec, context: &Context, findings: &mut Findings) {
    fill(&mut spec.channel, "stable");
    fill(&mut spec.cloud_provider, "aws");
    fill(&mut spec.update_policy, "automatic");
    spec.kubernetes_version = Some(context.control_plane_version.to_string());
    if spec.authorization.is_none() {
        spec.authorization = Some(AuthorizationSpec {
            rbac: Some(RBACAuthorizationSpec {}),
            ..AuthorizationSpec::default()
        });
    }
    let Some(base) = spec.config_base.clone() else {
        findings.add_error(
            "spec.configBase",
            "the location of the cluster's state is not known",
            "set it to s3://BUCKET/NAME",
        );
        return;
    };
    let base = base.trim_end_matches('/');
    if !base.contains("://") {
        findings.add_error(
            "spec.configBase",
            format!("{base:?} is not a URL"),
            "write s3://BUCKET/NAME or file://DIR/NAME",
        );
    }
    fill(&mut spec.key_store, format!("{base}/pki"));
    fill(&mut spec.secret_store, format!("{base}/secrets"));
}

/// The location of the cluster in the state store, and its owner.
pub(super) fn state_location(spec: &ClusterSpec, facts: &Facts) -> StateLocation {
    let account = Some(&facts.account).filter(|account| !account.is_empty());
    let base = spec.config_base.as_deref().unwrap_or_default();
    let base = base.trim_end_matches('/');
    let (scheme, rest) = base.split_once("://").unwrap_or(("", base));
    let (bucket, prefix) = match (scheme, rest.split_once('/')) {
        ("s3", Some((bucket, prefix))) => (Some(bucket), prefix.trim_matches('/')),
        ("s3", None) => (Some(rest), ""),
        _ => (None, rest),
    };
    StateLocation {
        config_base: base.to_owned(),
        bucket: bucket.map(str::to_owned),
        prefix: prefix.to_owned(),
        owner: facts.state_owner.as_ref().or(account).cloned(),
    }
}

/// Account, partition and region; the region follows from the subnets' zones.
pub(super) fn find_placement(
    spec: &ClusterSpec,
    context: &Context,
    findings: &mut Findings,
) -> Option<Placement> {
    let zones = spec.subnets.iter().map(|subnet| subnet.zone.as_str());
    let mut regions: Vec<&str> = zones.filter_map(region_of).collect();
    regions.sort_unstable();
    regions.dedup();
    let [region] = regions.as_slice() else {
        findings.add_error(
            "spec.subnets",
            match regions.as_slice() {
                [] => "no subnet has a zone, so the region is not known".to_owned(),
                several => format!("subnets are in several regions: {}", several.join(", ")),
            },
            "give every subnet a zone, all of one region",
        );
        return None;
    };
    let facts = context.facts;
    let or_default = |value: &str, default: &str| {
        let value = if value.is_empty() { default } else { value };
        value.to_owned()
    };
    Some(Placement {
        region: (*region).to_owned(),
        partition: or_default(&facts.partition, partition_of_region(region)),
        account: or_default(&facts.account, "000000000000"),
    })
}

/// The partition that regions of this name are in.
fn partition_of_region(region: &str) -> &'static str {
    match region.split('-').take(2).collect::<Vec<_>>().as_slice() {
        ["cn", _] => "aws-cn",
        ["us", "gov"] => "aws-us-gov",
        ["us", "iso"] => "aws-iso",
        ["us", "isob"] => "aws-iso-b",
        _ => "aws",
    }
}

#[cfg(test)]
mod tests {
    use super::state_location;
    use crate::api::cluster::ClusterSpec;
    use cloud::facts::Facts;

    #[test]
    fn state_lies_in_a_bucket_or_a_directory() {
        let bucket_and_prefix = |base: &str| {
            let spec = ClusterSpec {
                config_base: Some(base.to_owned()),
                ..ClusterSpec::default()
            };
            let state = state_location(&spec, &Facts::default());
            (state.bucket, state.prefix)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            bucket_and_prefix("s3://b/a.example.com"),
            (some("b"), "a.example.com".into())
        );
        assert_eq!(
            bucket_and_prefix("s3://b/x/y/n/"),
            (some("b"), "x/y/n".into())
        );
        assert_eq!(
            bucket_and_prefix("file:///srv/state/n"),
            (None, "/srv/state/n".into())
        );
    }
}
