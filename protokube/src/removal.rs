//! Role removal: removes Nodes whose instance does not exist any more. The cloud controller manager does this only for Nodes that are
//! not ready. A Node that claims to be ready, with a stolen certificate of a terminated instance, would stay and get pods with their
//! Secrets.

use anyhow::Context;
use aws_client::ec2_query::Ec2QueryClient;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, ListParams, PartialObjectMeta, Patch, PatchParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use node::bootstrap::{is_instance, untrusted_excerpt};
use node::report::Status;
use protokube_role::log::Log;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Name of the role in log lines.
const STAGE: &str = "removal";
/// Largest number of instances in one call, without this one.
const BATCH_SIZE: usize = 199;

/// Intervals of the role.
#[derive(Clone, Copy, Debug)]
pub struct RemovalPace {
    pub interval: Duration,
    /// Time for which an instance must be missing before its Node is removed.
    pub missing_for: Duration,
}

impl Default for RemovalPace {
    fn default() -> Self {
        Self {
            interval: Duration::from_mins(2),
            missing_for: Duration::from_mins(5),
        }
    }
}

/// Removes Nodes until a call of the API or EC2 fails. A rejected removal does not affect other Nodes. `own` is the id of this
/// instance: an answer of EC2 without it is not trusted.
pub async fn remove_stale_nodes(
    client: Client,
    ec2: Ec2QueryClient,
    own: &str,
    pace: RemovalPace,
    log: &Log,
) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(client);
    // First time each instance was missing. Ids are not reused, so a Node that is created again is removed in the next round.
    let mut missing_since: BTreeMap<String, Instant> = BTreeMap::new();
    loop {
        let listed = nodes.list_metadata(&ListParams::default()).await;
        let listed = listed.context("could not list Nodes")?;
        let mut named: Vec<&PartialObjectMeta<Node>> = listed.items.iter().collect();
        named.retain(|node| is_instance(&node.name_any()) && node.name_any() != own);
        for some in named.chunks(BATCH_SIZE) {
            let names: Vec<String> = some.iter().map(|node| node.name_any()).collect();
            let Some(existing) = find_existing(&ec2, own, &names).await? else {
                log.write_stage(
                    STAGE,
                    Status::Failed,
                    None,
                    "no Node is removed, because EC2 does not show this instance either",
                );
                continue;
            };
            for node in some {
                let name = node.name_any();
                if existing.contains(&name) {
                    missing_since.remove(&name);
                } else if let Some(since) = missing_since.get(&name) {
                    if since.elapsed() >= pace.missing_for {
                        remove_node(&nodes, node, log).await?;
                    }
                } else {
                    missing_since.insert(name, Instant::now());
                }
            }
        }
        tokio::time::sleep(pace.interval).await;
    }
}

/// The instances that EC2 shows and that are not terminated; `None` if its answer lacks this instance. Instances are described by
/// id, so that a removed tag does not remove a Node. EC2 shows terminated instances for about an
/// hour, so their state is checked.
async fn find_existing(
    ec2: &Ec2QueryClient,
    own: &str,
    names: &[String],
) -> anyhow::Result<Option<BTreeSet<String>>> {
    let ids = names.iter().map(String::as_str).chain([own]);
    let ids: Vec<&str> = ids.collect();
    let instances = ec2.describe_instances(&[("instance-id", &ids)]).await?;
    let alive = instances
        .into_iter()
        .filter(|one| one.state != "terminated");
    let there: BTreeSet<String> = alive.map(|one| one.id).collect();
    Ok(there.contains(own).then_some(there))
}

/// Removes a Node, but not a new one with the same name. Its finalizers are removed too, because an attacker with the kubelet's
/// certificate may have set some to keep the Node.
async fn remove_node(
    nodes: &Api<Node>,
    node: &PartialObjectMeta<Node>,
    log: &Log,
) -> anyhow::Result<()> {
    let name = node.name_any();
    let parameters = DeleteParams {
        preconditions: Some(Preconditions {
            uid: node.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    let stays = match nodes.delete(&name, &parameters).await {
        Ok(answer) => answer.left(),
        Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => return Ok(()),
        Err(error) => return log_refusal(&name, error, log),
    };
    // The Node stays while it has finalizers, and no new ones can be added:
    // https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/
    let remaining = stays.filter(|node| !node.finalizers().is_empty());
    if let Some(node) = remaining {
        return remove_finalizers(nodes, &node, log).await;
    }
    let detail = "removed: its instance is terminated or does not exist any more";
    log.write_stage(STAGE, Status::Finished, Some(&name), detail);
    Ok(())
}

/// Removes the finalizers of a Node that is being deleted.
async fn remove_finalizers(nodes: &Api<Node>, node: &Node, log: &Log) -> anyhow::Result<()> {
    let name = node.name_any();
    let none = Patch::Merge(json!({ "metadata": { "uid": node.uid(), "finalizers": null } }));
    let parameters = PatchParams::default();
    match nodes.patch_metadata(&name, &parameters, &none).await {
        Ok(_) => {
            let finalizers = untrusted_excerpt(&node.finalizers().join(", "));
            let detail = format!(
                "removed with its finalizers ({finalizers}): its instance is terminated or does not exist any more"
            );
            log.write_stage(STAGE, Status::Finished, Some(&name), &detail);
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(()),
        Err(error) => log_refusal(&name, error, log),
    }
}

/// Logs a rejection by the API, which is retried in the next round. Other errors are returned.
fn log_refusal(name: &str, error: kube::Error, log: &Log) -> anyhow::Result<()> {
    let kube::Error::Api(status) = error else {
        return Err(error).with_context(|| format!("could not remove {name}"));
    };
    let detail = format!("not removed: {}", untrusted_excerpt(&status.message));
    log.write_stage(STAGE, Status::Failed, Some(name), &detail);
    Ok(())
}
