//! Takes the marks of a termination away from Nodes that somebody has uncordoned: the label that keeps them out of load balancers
//! of Services, the annotation and the taints.

use crate::termination::{EXCLUDED_BY, TAINT_PREFIX};
use anyhow::Context;
use drain::{EXCLUDE_LABEL, label_of, merge_patches};
use k8s_openapi::api::core::v1::Node;
use kube::api::PartialObjectMeta;
use kube::{Api, Client, ResourceExt};
use node::bootstrap::untrusted_excerpt;
use node::names::TERMINATION_ANNOTATION;
use node::report::Status;
use protokube_role::log::Log;
use serde_json::{Value, json};

/// Releases those of the Nodes that were marked and are not cordoned any more. A rejection by the API affects no other Node, and is
/// tried again in the next round.
pub(crate) async fn release_uncordoned(
    client: &Client,
    listed: &[PartialObjectMeta<Node>],
    stage: &'static str,
    log: &Log,
) -> anyhow::Result<()> {
    let nodes = Api::<Node>::all(client.clone());
    let marked = listed
        .iter()
        .filter(|node| node.annotations().contains_key(TERMINATION_ANNOTATION));
    for name in marked.map(ResourceExt::name_any) {
        let found = nodes.get_opt(&name).await;
        let found = found.with_context(|| format!("could not read {name}"))?;
        if found.as_ref().and_then(release_patch).is_none() {
            continue;
        }
        let change = |node: &Node| release_patch(node).unwrap_or_else(|| json!({}));
        let (status, detail) = match kube_drain::change_node(client.clone(), &name, change).await {
            Ok(()) => (Status::Finished, "back in service: uncordoned".to_owned()),
            // Somebody else has changed it meanwhile.
            Err(kube::Error::Api(answer)) if answer.code == 409 => continue,
            Err(kube::Error::Api(answer)) => {
                let why = untrusted_excerpt(&answer.message);
                (Status::Failed, format!("could not take it back: {why}"))
            }
            Err(error) => {
                return Err(error).with_context(|| format!("could not change {name}"));
            }
        };
        log.write_stage(stage, status, Some(&name), &detail);
    }
    Ok(())
}

/// The change that takes the marks away; `None` for a Node that is cordoned or was never marked.
fn release_patch(node: &Node) -> Option<Value> {
    let spec = node.spec.as_ref();
    let cordoned = spec.and_then(|spec| spec.unschedulable) == Some(true);
    if cordoned || !node.annotations().contains_key(TERMINATION_ANNOTATION) {
        return None;
    }
    let mut patch = json!({"metadata": {"annotations": {TERMINATION_ANNOTATION: null}}});
    if label_of(node, EXCLUDE_LABEL) == Some(EXCLUDED_BY) {
        merge_patches(
            &mut patch,
            json!({"metadata": {"labels": {EXCLUDE_LABEL: null}}}),
        );
    }
    let taints = spec.and_then(|spec| spec.taints.as_ref());
    let taints = taints.map(Vec::as_slice).unwrap_or_default();
    let kept = taints
        .iter()
        .filter(|taint| !taint.key.starts_with(TAINT_PREFIX));
    let kept: Vec<_> = kept.collect();
    if kept.len() < taints.len() {
        merge_patches(&mut patch, json!({"spec": {"taints": kept}}));
    }
    Some(patch)
}
