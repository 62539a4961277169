//! AWS permissions of service accounts: where the issuer of their tokens is published, and their roles.

use super::{Context, Findings};
use crate::api::cluster::ClusterSpec;
use crate::read::path;
use full::iam::endpoint_suffix;
use full::{PodIdentity, ServiceAccountRole};

/// The audience of tokens for AWS, as in kOps.
const AUDIENCE: &str = "amazonaws.com";

/// The published issuer: its place in S3 as a URL; `None`: the spec has no discovery store.
pub(super) fn published_issuer(spec: &ClusterSpec, context: &Context) -> Option<String> {
    let store = discovery_store(spec)?;
    if let Some(place) = store.strip_prefix("memfs://") {
        // Of kOps' own tests.
        return Some(format!("https://{place}"));
    }
    let place = store.strip_prefix("s3://")?;
    let (bucket, folder) = place.split_once('/').unwrap_or((place, ""));
    let facts = context.facts;
    let own = super::wanted_facts::cluster_region(spec);
    let region = facts.discovery_region.as_deref().or(own)?;
    let suffix = endpoint_suffix(&facts.partition);
    let url = if spec.is_ipv6() {
        // Its address under the other name has IPv4 only.
        format!("https://s3.dualstack.{region}.{suffix}/{bucket}/{folder}")
    } else {
        format!("https://{bucket}.s3.{region}.{suffix}/{folder}")
    };
    Some(url.trim_end_matches('/').to_owned())
}

pub(super) fn discovery_store(spec: &ClusterSpec) -> Option<&str> {
    let discovery = spec.service_account_issuer_discovery.as_ref()?;
    let store = discovery.discovery_store.as_deref()?;
    Some(store.trim_end_matches('/'))
}

/// The roles of a completed spec; `None` without a discovery store.
pub(super) fn full_pod_identity(
    spec: &ClusterSpec,
    findings: &mut Findings,
) -> Option<PodIdentity> {
    let discovery = spec.service_account_issuer_discovery.as_ref()?;
    let store = discovery_store(spec)?;
    let api = spec.kube_api_server.as_ref();
    let issuer = api.and_then(|api| api.service_account_issuer.clone())?;
    let mut audiences = Vec::new();
    if discovery.enable_aws_oidc_provider == Some(true) {
        audiences.push(AUDIENCE.to_owned());
        audiences.extend(discovery.additional_audiences.iter().cloned());
        audiences.sort();
        audiences.dedup();
    }
    let iam = spec.iam.clone().unwrap_or_default();
    let mut roles = Vec::new();
    for (index, role) in iam
        .service_account_external_permissions
        .into_iter()
        .enumerate()
    {
        let aws = role.aws.unwrap_or_default();
        let statements = match aws.inline_policy.as_deref().map(serde_json::from_str) {
            None => None,
            Some(Ok(statements)) => Some(statements),
            Some(Err(error)) => {
                let at = path::element_path("spec.iam.serviceAccountExternalPermissions", index);
                findings.add_error(
                    path::field_path(&path::field_path(&at, "aws"), "inlinePolicy"),
                    format!("this is not JSON: {error}"),
                    "write a JSON list of policy statements",
                );
                continue;
            }
        };
        roles.push(ServiceAccountRole {
            namespace: role.namespace,
            service_account: role.name,
            policy_arns: aws.policy_arns,
            statements,
        });
    }
    Some(PodIdentity {
        issuer: issuer.trim_end_matches('/').to_owned(),
        discovery_store: store.to_owned(),
        audiences,
        addon_roles: iam.use_service_account_external_permissions == Some(true),
        roles,
    })
}
