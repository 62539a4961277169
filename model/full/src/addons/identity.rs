//! Gives the pods of an addon the role of their service account: a token for AWS beside the pod's own, and the two variables by which AWS'
//! SDKs find it.

use super::permissions::{NAMESPACE, addon_roles};
use crate::{FullSpec, service_account_role_arn};
use serde_json::{Map, Value, json};

/// Where the token is in the pod, as in kOps and EKS.
const FOLDER: &str = "/var/run/secrets/amazonaws.com/";
const VOLUME: &str = "token-amazonaws-com";

/// The audience of the token, and how long it is valid in seconds; kubelet renews it in time.
const AUDIENCE: &str = "amazonaws.com";
const VALID: u32 = 86_400;

/// A group that may read the token, where the pod has none of its own.
const GROUP: u32 = 10_001;

/// Adds the token to the pods of a workload whose service account has a role.
pub(super) fn add_role(full: &FullSpec, object: &mut Value) {
    let namespace = object.pointer("/metadata/namespace");
    if namespace.and_then(Value::as_str) != Some(NAMESPACE) {
        return;
    }
    let Some(pod) = object.pointer_mut("/spec/template/spec") else {
        return;
    };
    let account = pod.get("serviceAccountName").and_then(Value::as_str);
    let roles = addon_roles(full);
    let role = roles.into_iter().find(|(other, _)| Some(*other) == account);
    if let (Some((account, _)), Some(pod)) = (role, pod.as_object_mut()) {
        add_token(pod, &service_account_role_arn(full, NAMESPACE, account));
    }
}

fn add_token(pod: &mut Map<String, Value>, role_arn: &str) {
    push(
        pod,
        "volumes",
        json!({"name": VOLUME, "projected": {"defaultMode": 420, "sources": [{"serviceAccountToken": {
            "audience": AUDIENCE, "expirationSeconds": VALID, "path": "token",
        }}]}}),
    );
    let containers = pod.get_mut("containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        let Some(container) = container.as_object_mut() else {
            continue;
        };
        push(
            container,
            "env",
            json!({"name": "AWS_ROLE_ARN", "value": role_arn}),
        );
        let file = format!("{FOLDER}token");
        push(
            container,
            "env",
            json!({"name": "AWS_WEB_IDENTITY_TOKEN_FILE", "value": file}),
        );
        push(
            container,
            "volumeMounts",
            json!({"mountPath": FOLDER, "name": VOLUME, "readOnly": true}),
        );
    }
    let security = pod
        .entry("securityContext")
        .or_insert_with(|| Map::new().into());
    if let Some(security) = security.as_object_mut() {
        security.entry("fsGroup").or_insert_with(|| GROUP.into());
    }
}

fn push(object: &mut Map<String, Value>, list: &str, item: Value) {
    let list = object.entry(list).or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(item);
    }
}
