//! IAM settings of instances.

use super::Findings;
use super::fill::fill;
use crate::api::cluster::ClusterSpec;
use full::Iam;

/// Fills in the defaults, which are those of kOps' non-legacy roles.
pub(super) fn complete_iam(spec: &mut ClusterSpec) {
    let iam = spec.iam.get_or_insert_default();
    fill(&mut iam.legacy, false);
    fill(&mut iam.allow_container_registry, false);
}

/// The IAM settings of a completed spec; policies are keyed `control-plane`, `node`, `bastion`.
pub(super) fn full_iam(spec: &ClusterSpec, findings: &mut Findings) -> Option<Iam> {
    let mut policies = Ok(std::collections::BTreeMap::new());
    for (role, text) in &spec.additional_policies {
        match serde_json::from_str(text) {
            Ok(policy) => {
                if let Ok(policies) = &mut policies {
                    policies.insert(role_name(role), policy);
                }
            }
            Err(error) => {
                findings.add_error(
                    format!("spec.additionalPolicies.{role}"),
                    format!("this is not JSON: {error}"),
                    "write a JSON list of policy statements",
                );
                policies = Err(());
            }
        }
    }
    let iam = spec.iam.as_ref();
    Some(Iam {
        permissions_boundary: iam.and_then(|iam| iam.permissions_boundary.clone()),
        allow_container_registry: iam.and_then(|iam| iam.allow_container_registry) == Some(true),
        external_policies: spec
            .external_policies
            .iter()
            .map(|(role, arns)| (role_name(role), arns.clone()))
            .collect(),
        additional_policies: policies.ok()?,
        // The spec that asks for some is refused.
    })
}

/// The role's name in the full spec. kOps' v1alpha2 format calls control planes `master`.
fn role_name(role: &str) -> String {
    match role.to_ascii_lowercase().as_str() {
        "master" | "controlplane" => "control-plane".to_owned(),
        other => other.to_owned(),
    }
}
