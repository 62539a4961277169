//! AWS permissions of service accounts: the store of the issuer's documents, and the roles.

use super::iam::{check_statements, not_a_policy};
use super::text::{is_arn, is_dns_label, is_dns_name};
use crate::api::cluster::ClusterSpec;
use crate::api::iam::ServiceAccountExternalPermission;
use crate::read::{Problem, path};
use node::names::service_account_role;
use std::collections::BTreeMap;

const DISCOVERY: &str = "spec.serviceAccountIssuerDiscovery";
const ROLES: &str = "spec.iam.serviceAccountExternalPermissions";

pub fn check(name: &str, spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let discovery = spec.service_account_issuer_discovery.as_ref();
    let store = discovery.and_then(|discovery| discovery.discovery_store.as_deref());
    if let Some(store) = store {
        check_store(store, spec.config_base.as_deref(), problems);
    }
    let trusted = discovery.and_then(|discovery| discovery.enable_aws_oidc_provider) == Some(true);
    if trusted && store.is_none() {
        let message = "AWS reads the issuer's keys from a discovery store, and there is none";
        let at = format!("{DISCOVERY}.enableAWSOIDCProvider");
        problems.push(
            Problem::error(at, message)
                .hint("set spec.serviceAccountIssuerDiscovery.discoveryStore to s3://BUCKET/PATH"),
        );
    }
    let api = spec.kube_api_server.as_ref();
    let issuer = api.and_then(|api| api.service_account_issuer.as_deref());
    if let Some(issuer) = issuer.filter(|_| trusted)
        && (!issuer.starts_with("https://") || issuer.ends_with('/'))
    {
        let message = format!("AWS does not take \"{issuer}\" as an issuer");
        problems.push(
            Problem::error("spec.kubeAPIServer.serviceAccountIssuer", message)
                .hint("leave it out, or write https://HOST/PATH without a slash at its end"),
        );
    }
    let Some(iam) = &spec.iam else {
        return;
    };
    let roles = &iam.service_account_external_permissions;
    let mut asks = Vec::new();
    if iam.use_service_account_external_permissions == Some(true) {
        asks.push("spec.iam.useServiceAccountExternalPermissions");
    }
    if !roles.is_empty() {
        asks.push(ROLES);
    }
    for at in asks.into_iter().filter(|_| !trusted) {
        let message = "service accounts have roles only if AWS takes their tokens";
        problems.push(
            Problem::error(at, message)
                .hint("set spec.serviceAccountIssuerDiscovery.enableAWSOIDCProvider: true, with a discoveryStore"),
        );
    }
    let webhook = spec.pod_identity_webhook.as_ref();
    let webhook = webhook.and_then(|webhook| webhook.enabled) == Some(true);
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for (index, role) in roles.iter().enumerate() {
        let at = path::element_path(ROLES, index);
        check_role(&at, role, problems);
        if webhook && role.namespace.contains('*') {
            let message = "the pod identity webhook knows no patterns, and leaves the pods of these namespaces as they are";
            problems.push(
                Problem::warning(path::field_path(&at, "namespace"), message)
                    .hint("annotate their service accounts with eks.amazonaws.com/role-arn"),
            );
        }
        let made = service_account_role(name, &role.namespace, &role.name);
        if let Some(other) = names.insert(made.clone(), at.clone()) {
            let message = format!("{other} has the same role, {made}");
            problems.push(Problem::error(at, message).hint("name each service account once"));
        }
    }
}

/// A bucket whose name has a dot is not in S3's certificate (S3 User Guide, "Virtual hosting of buckets"). What is in the store is public.
fn check_store(store: &str, base: Option<&str>, problems: &mut Vec<Problem>) {
    const HINT: &str = "write s3://BUCKET/PATH with a bucket from which everybody may read";
    let at = format!("{DISCOVERY}.discoveryStore");
    let place = store.strip_prefix("s3://");
    // kOps' own tests have stores in memory.
    let Some(place) = place.or_else(|| store.strip_prefix("memfs://")) else {
        let message = format!("\"{store}\" is not a place in S3, from where AWS reads");
        problems.push(Problem::error(at, message).hint(HINT));
        return;
    };
    let (bucket, folder) = place.split_once('/').unwrap_or((place, ""));
    if store.starts_with("s3://") && bucket.contains('.') {
        let message = format!(
            "the bucket {bucket} has a dot in its name, which is not in the certificate of S3"
        );
        problems.push(Problem::error(&at, message).hint("use a bucket without dots in its name"));
    }
    let strange = |c: char| !c.is_ascii_alphanumeric() && !"-_./".contains(c);
    let parts: Vec<&str> = folder.trim_end_matches('/').split('/').collect();
    if folder.contains(strange) || parts.contains(&"..") || (parts.len() > 1 && parts.contains(&""))
    {
        let message = format!("\"{folder}\" cannot be part of the issuer's URL");
        problems.push(
            Problem::error(&at, message)
                .hint("write letters, digits and the characters - _ . / in the path"),
        );
    }
    let of_state = base.and_then(|base| base.strip_prefix("s3://"));
    let of_state = of_state.and_then(|base| base.split('/').next());
    if of_state == Some(bucket) {
        let message = format!(
            "the bucket {bucket} has the cluster's state, with its keys: never make all of it public"
        );
        problems.push(Problem::warning(at, message).hint("use a bucket that holds nothing else"));
    }
}

fn check_role(at: &str, role: &ServiceAccountExternalPermission, problems: &mut Vec<Problem>) {
    if !is_dns_name(&role.name) {
        let message = format!("\"{}\" is not the name of a service account", role.name);
        let problem = Problem::error(path::field_path(at, "name"), message);
        problems.push(problem.hint("write lowercase letters, digits, dashes and dots"));
    }
    if !is_dns_label(&role.namespace.replace('*', "x")) {
        let message = format!("\"{}\" is not the name of a namespace", role.namespace);
        let problem = Problem::error(path::field_path(at, "namespace"), message);
        problems.push(problem.hint("write lowercase letters, digits and dashes; * stands for any"));
    }
    let at = path::field_path(at, "aws");
    let aws = role.aws.clone().unwrap_or_default();
    let both = "write either policyARNs or inlinePolicy";
    match (&aws.inline_policy, aws.policy_arns.is_empty()) {
        (None, true) => {
            let message = "the service account gets no permissions";
            problems.push(Problem::error(&at, message).hint(both));
        }
        (Some(_), false) => {
            let message = "the service account has policyARNs and an inlinePolicy";
            problems.push(Problem::error(&at, message).hint(both));
        }
        (Some(text), true) => {
            check_statements(&path::field_path(&at, "inlinePolicy"), text, problems);
        }
        (None, false) => {}
    }
    let arns = path::field_path(&at, "policyARNs");
    for (index, arn) in aws.policy_arns.iter().enumerate() {
        if !is_arn("iam", arn) {
            problems.push(not_a_policy(path::element_path(&arns, index), arn));
        }
    }
}
