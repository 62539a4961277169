//! The pod identity webhook: gives pods the token and the variables with which they take the AWS role of their service account.

use super::control_planes::{controller_replicas, tolerations};
use super::manifest::AddonName;
use super::{Addon, Error};
use crate::{FullSpec, ServiceAccountRole, service_account_role_arn};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use templates::Template;

/// Whom tokens are for: the client id that AWS' OIDC provider of the cluster has.
const AUDIENCE: &str = "amazonaws.com";

/// Settings of the webhook: `spec.podIdentityWebhook`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodIdentityWebhook {
    /// Number of pods; `None`: two, or one if there is one control plane.
    pub replicas: Option<i32>,
}

#[derive(Serialize)]
struct Manifest {
    replicas: i32,
    region_flag: String,
    roles: String,
    tolerations: Vec<Value>,
}

impl Template for Manifest {
    const NAME: &'static str = "pod_identity_webhook/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("pod_identity_webhook/manifest.yaml.hbs");
}

/// What the webhook reads of a role.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Mapping {
    #[serde(rename = "RoleARN")]
    role_arn: String,
    audience: &'static str,
    #[serde(rename = "UseRegionalSTS")]
    use_regional_sts: bool,
    /// In seconds; 0: the webhook's default of a day.
    token_expiration: i64,
}

pub(super) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let Some(webhook) = &full.addons.pod_identity_webhook else {
        return Ok(None);
    };
    let named = AddonName::new("eks-pod-identity-webhook.addons.k8s.io", "k8s-1.16");
    let manifest = named.render_template(&Manifest {
        replicas: webhook
            .replicas
            .unwrap_or_else(|| controller_replicas(full)),
        region_flag: format!("--aws-default-region={}", full.placement.region),
        roles: roles_text(full)?,
        tolerations: tolerations(full),
    })?;
    named.make_addon(full, &[manifest]).map(Some)
}

/// The roles by service account, as JSON: `NAMESPACE/NAME`.
fn roles_text(full: &FullSpec) -> Result<String, Error> {
    let identity = full.pod_identity.iter();
    let roles = identity.flat_map(|identity| &identity.roles);
    let mapping = |role: &ServiceAccountRole| Mapping {
        role_arn: service_account_role_arn(full, &role.namespace, &role.service_account),
        audience: AUDIENCE,
        use_regional_sts: true,
        token_expiration: 0,
    };
    let all: BTreeMap<String, Mapping> = roles
        .map(|role| {
            let of = format!("{}/{}", role.namespace, role.service_account);
            (of, mapping(role))
        })
        .collect();
    Ok(serde_json::to_string(&all)?)
}
