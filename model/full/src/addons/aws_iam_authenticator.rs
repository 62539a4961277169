//! The AWS IAM authenticator: says to API servers which user of the cluster an AWS identity is.

use super::control_planes::tolerations;
use super::manifest::AddonName;
use super::{Addon, Error};
use crate::FullSpec;
use node::components::authenticator::{FOLDER, USER};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use templates::Template;

/// The backend that reads a ConfigMap of the user's, as a file.
const MOUNTED_FILE: &str = "MountedFile";

/// Settings of the authenticator: `spec.authentication.aws`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwsIamAuthenticator {
    pub image: String,
    /// Where it finds identities, with commas between them; `None`: `MountedFile`, its default.
    pub backend_mode: Option<String>,
    /// What tokens are for; `None`: the cluster's name, or what the mounted file says.
    pub cluster_id: Option<String>,
    pub identity_mappings: Vec<IdentityMapping>,
    pub memory_request: Option<String>,
    pub memory_limit: Option<String>,
    pub cpu_request: Option<String>,
    pub cpu_limit: Option<String>,
}

/// An AWS identity and who it is in the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityMapping {
    /// ARN of a role or user of IAM.
    pub arn: String,
    pub username: String,
    pub groups: Vec<String>,
}

#[derive(Serialize)]
struct Manifest {
    image: String,
    arguments: Vec<String>,
    resources: Value,
    user: u32,
    mounts_config: bool,
    folder: &'static str,
    tolerations: Vec<Value>,
    mappings: Vec<Mapping>,
}

#[derive(Serialize)]
struct Mapping {
    name: String,
    spec: Value,
}

impl Template for Manifest {
    const NAME: &'static str = "aws_iam_authenticator/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("aws_iam_authenticator/manifest.yaml.hbs");
}

pub(super) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let Some(authenticator) = &full.addons.aws_iam_authenticator else {
        return Ok(None);
    };
    let named = AddonName {
        name: "authentication.aws",
        id: "k8s-1.12",
        selector: ("role.kubernetes.io/authentication", "1"),
    };
    let manifest = named.render_template(&make_manifest(full, authenticator))?;
    named.make_addon(full, &[manifest]).map(Some)
}

fn make_manifest(full: &FullSpec, authenticator: &AwsIamAuthenticator) -> Manifest {
    let mode = authenticator.backend_mode.as_deref();
    let mounts_config = mode.is_none_or(|mode| mode.contains(MOUNTED_FILE));
    let mappings = authenticator.identity_mappings.iter().enumerate();
    Manifest {
        image: authenticator.image.clone(),
        arguments: arguments(full, authenticator, mounts_config),
        resources: json!({
            "requests": {
                "cpu": authenticator.cpu_request.as_deref().unwrap_or("10m"),
                "memory": authenticator.memory_request.as_deref().unwrap_or("20Mi"),
            },
            "limits": {
                "cpu": authenticator.cpu_limit,
                "memory": authenticator.memory_limit.as_deref().unwrap_or("20Mi"),
            },
        }),
        user: USER,
        mounts_config,
        folder: FOLDER,
        tolerations: all_tolerations(full),
        mappings: mappings
            .map(|(index, mapping)| Mapping {
                name: format!("iam-identity-mapping-{index}"),
                spec: json!({
                    "arn": mapping.arn,
                    "username": mapping.username,
                    "groups": mapping.groups,
                }),
            })
            .collect(),
    }
}

fn arguments(
    full: &FullSpec,
    authenticator: &AwsIamAuthenticator,
    mounts_config: bool,
) -> Vec<String> {
    let id = authenticator.cluster_id.as_ref();
    // Without an id of the spec, a mounted file has one.
    let id = id.or((!mounts_config).then_some(&full.name));
    let config = "--config=/etc/aws-iam-authenticator/config.yaml";
    let mut all = vec!["server".to_owned()];
    all.extend(mounts_config.then(|| config.to_owned()));
    all.extend(id.map(|id| format!("--cluster-id={id}")));
    all.push("--state-dir=/var/aws-iam-authenticator".to_owned());
    all.push("--kubeconfig-pregenerated=true".to_owned());
    let mode = authenticator.backend_mode.iter();
    all.extend(mode.map(|mode| format!("--backend-mode={mode}")));
    all
}

/// kOps', which let it start before the network, and those of other taints of the spec.
fn all_tolerations(full: &FullSpec) -> Vec<Value> {
    let taints = ["master", "control-plane", "api-server"];
    let taints = taints.map(|role| format!("node-role.kubernetes.io/{role}"));
    let own = taints
        .iter()
        .map(|key| json!({"effect": "NoSchedule", "key": key}));
    let waits = [
        "node.cloudprovider.kubernetes.io/uninitialized",
        "CriticalAddonsOnly",
    ];
    let waits = waits.map(|key| json!({"key": key, "operator": "Exists"}));
    let others = tolerations(full).into_iter();
    let others = others.filter(|one| !taints.iter().any(|key| one["key"] == **key));
    own.chain(waits).chain(others).collect()
}
