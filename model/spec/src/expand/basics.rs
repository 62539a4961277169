//! The first decisions: Kubernetes version, stores, account and region.

use super::fill::fill;
use super::{Found, Known};
use crate::api::authorization::{AuthorizationSpec, RBACAuthorizationSpec};
use crate::api::cluster::ClusterSpec;
use crate::catalog::recommended;
use crate::validate::subnets::region_of;
use crate::validate::versions::{NEWEST_MINOR, OLDEST_MINOR, Version};
use full::{Placement, StateLocation};

/// The Kubernetes version; `None` if the spec's is none that kctl can do.
pub(super) fn version(spec: &ClusterSpec, found: &mut Found) -> Option<Version> {
    let default = recommended(NEWEST_MINOR).unwrap_or_default();
    let text = spec.kubernetes_version.as_deref().unwrap_or(default);
    let known = |version: &Version| {
        version.major == 1 && (OLDEST_MINOR..=NEWEST_MINOR).contains(&version.minor)
    };
    let version = Version::parse(text).filter(known);
    if version.is_none() {
        let message = format!("{text:?} is not a Kubernetes version that kctl knows");
        let hint = format!("use 1.{OLDEST_MINOR}.0 to {default}");
        found.error("spec.kubernetesVersion", message, &hint);
    }
    version
}

/// Versions, stores, and who may do what.
pub(super) fn complete(spec: &mut ClusterSpec, known: &Known, found: &mut Found) {
    fill(&mut spec.channel, "stable");
    fill(&mut spec.cloud_provider, "aws");
    fill(&mut spec.update_policy, "automatic");
    spec.kubernetes_version = Some(known.version.to_string());
    if spec.authorization.is_none() {
        spec.authorization = Some(AuthorizationSpec {
            rbac: Some(RBACAuthorizationSpec {}),
            ..AuthorizationSpec::default()
        });
    }
    let Some(base) = spec.config_base.clone() else {
        found.error(
            "spec.configBase",
            "where the cluster's state lies is not known",
            "set it to s3://BUCKET/NAME, or pass the state store",
        );
        return;
    };
    let base = base.trim_end_matches('/');
    if !base.contains("://") {
        found.error(
            "spec.configBase",
            format!("{base:?} is not a URL"),
            "write s3://BUCKET/NAME or file://DIR/NAME",
        );
    }
    fill(&mut spec.key_store, format!("{base}/pki"));
    fill(&mut spec.secret_store, format!("{base}/secrets"));
}

/// Where the cluster's state lies.
pub(super) fn state(spec: &ClusterSpec) -> StateLocation {
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
    }
}

/// Account and region.
pub(super) fn placement(spec: &ClusterSpec, known: &Known, found: &mut Found) -> Option<Placement> {
    let zones = spec.subnets.iter().map(|subnet| subnet.zone.as_str());
    let mut regions: Vec<&str> = zones.filter_map(region_of).collect();
    regions.sort_unstable();
    regions.dedup();
    let [region] = regions.as_slice() else {
        found.error(
            "spec.subnets",
            match regions.as_slice() {
                [] => "no subnet has a zone, so the region is not known".to_owned(),
                several => format!("subnets are in several regions: {}", several.join(", ")),
            },
            "give every subnet a zone, all of one region",
        );
        return None;
    };
    let facts = known.facts;
    let or = |said: &str, default: &str| {
        let said = if said.is_empty() { default } else { said };
        said.to_owned()
    };
    Some(Placement {
        region: (*region).to_owned(),
        partition: or(&facts.partition, partition_of_region(region)),
        account: or(&facts.account, "000000000000"),
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
    use super::state;
    use crate::api::cluster::ClusterSpec;

    #[test]
    fn state_lies_in_a_bucket_or_a_directory() {
        let of = |base: &str| {
            let spec = ClusterSpec {
                config_base: Some(base.to_owned()),
                ..ClusterSpec::default()
            };
            let state = state(&spec);
            (state.bucket, state.prefix)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            of("s3://b/a.example.com"),
            (some("b"), "a.example.com".into())
        );
        assert_eq!(of("s3://b/x/y/n/"), (some("b"), "x/y/n".into()));
        assert_eq!(of("file:///srv/state/n"), (None, "/srv/state/n".into()));
    }
}
