//! Limits what scheduled events of AWS may take out of service at a time: a single message can name every instance, and nothing else
//! says whether AWS Health has sent it. AWS announces such events days ahead.

use anyhow::Context;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use node::names::TERMINATION_ANNOTATION;
use node::termination::{Cause, may_begin_maintenance};

/// True if a Node is out of service for a scheduled event, or may go out of service for one. Control planes that ask at the same
/// moment may each take one Node more.
pub(super) async fn may_begin(
    client: &Client,
    node: &Node,
    control_plane: bool,
) -> anyhow::Result<bool> {
    if is_out(node) {
        return Ok(true);
    }
    let nodes = Api::<Node>::all(client.clone());
    let nodes = nodes.list_metadata(&ListParams::default()).await;
    let nodes = nodes.context("could not list Nodes")?;
    let all = nodes.items.iter();
    let all = all.map(|node| {
        (
            node.labels().contains_key(super::CONTROL_PLANE_LABEL),
            is_out(node),
        )
    });
    Ok(may_begin_maintenance(control_plane, all))
}

/// True if an announcement of a scheduled event has marked the Node, and nobody has uncordoned it since.
fn is_out(node: &impl ResourceExt) -> bool {
    let note = node.annotations().get(TERMINATION_ANNOTATION);
    note.is_some_and(|note| note.starts_with(&Cause::ScheduledEvent.to_string()))
}
