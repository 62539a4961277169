//! Drains Nodes through the Kubernetes API, for kctl and protokube. Every call can be repeated.

use drain::merge_patches;
use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, EvictParams, Patch, PatchParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Evictions that are sent at the same time.
const AT_ONCE: usize = 8;

/// Changes a Node by the merge patch that `change` returns for it. A change of somebody else's meanwhile is a conflict, and not
/// overwritten. A Node that is gone is left alone.
pub async fn change_node(
    client: kube::Client,
    name: &str,
    change: impl Fn(&Node) -> Value,
) -> Result<(), kube::Error> {
    let nodes = Api::<Node>::all(client);
    let Some(node) = nodes.get_opt(name).await? else {
        return Ok(());
    };
    let mut patch = change(&node);
    merge_patches(
        &mut patch,
        json!({"metadata": {"resourceVersion": node.metadata.resource_version}}),
    );
    let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
    nodes.patch(name, &parameters, &patch).await.map(drop)
}

/// Evicts pods (`NAMESPACE/NAME`). `grace_seconds` replaces the pods' own termination grace period. Returns the reason of every
/// eviction that the API refuses for now, by pod.
pub async fn evict_pods(
    client: &kube::Client,
    pods: &[String],
    grace_seconds: Option<u32>,
) -> Result<BTreeMap<String, String>, kube::Error> {
    let refusals = stream::iter(pods.to_vec())
        .map(|pod| evict_pod(client.clone(), pod, grace_seconds))
        .buffer_unordered(AT_ONCE);
    refusals
        .try_filter_map(|refusal| async { Ok(refusal) })
        .try_collect()
        .await
}

fn is_of_namespace_that_goes(status: &kube::core::Status) -> bool {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 403 && causes.any(|cause| cause.reason == "NamespaceTerminating")
}

/// The refusal of an eviction for now, with the pod; `None` if the pod leaves or is gone.
async fn evict_pod(
    client: kube::Client,
    pod: String,
    grace_seconds: Option<u32>,
) -> Result<Option<(String, String)>, kube::Error> {
    let (namespace, name) = pod.split_once('/').unwrap_or(("", &pod));
    let parameters = EvictParams {
        delete_options: grace_seconds.map(|seconds| DeleteParams::default().grace_period(seconds)),
        ..EvictParams::default()
    };
    let api = Api::<Pod>::namespaced(client, namespace);
    match api.evict(name, &parameters).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        // 429: a budget does not allow it now, or is being computed. 500: several budgets select the pod. 403 with this cause: the namespace
        // is being deleted, and the pod soon too (apiserver: `plugin/namespace/lifecycle`).
        Err(kube::Error::Api(status))
            if [429, 500].contains(&status.code) || is_of_namespace_that_goes(&status) =>
        {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            let causes: Vec<&str> = causes.map(|cause| cause.message.as_str()).collect();
            let why = if causes.is_empty() {
                status.message.clone()
            } else {
                causes.join("; ")
            };
            Ok(Some((pod, why)))
        }
        Err(error) => Err(error),
    }
}
