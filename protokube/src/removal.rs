//! Nodes whose instance is gone are removed. The cloud controller manager does it for Nodes that are not ready; one that says
//! it is ready, with the certificate of a machine that was terminated, would stay and get pods with their Secrets.

use crate::log::Log;
use anyhow::Context;
use aws_client::machine::Machine;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, ListParams, PartialObjectMeta, Patch, PatchParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use node::bootstrap::{echo, is_instance};
use node::report::Status;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How protokube's lines call this part.
const STAGE: &str = "removal";
/// Instances that one call names, without this one.
const CALL: usize = 199;

/// How often is looked, and how long an instance has to be gone.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Time between looks.
    pub look: Duration,
    /// From the first look that did not find it to the one after which its Node is removed.
    pub gone: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            look: Duration::from_mins(2),
            gone: Duration::from_mins(5),
        }
    }
}

/// Removes Nodes for ever; that the API or EC2 cannot be asked ends it, and everything is observed anew. A Node that the API
/// refuses to remove keeps no other. `own` is the instance this
/// runs on: an answer of EC2 that lacks it is not believed.
pub async fn run(
    client: Client,
    machine: Machine,
    own: &str,
    pace: Pace,
    log: &Log,
) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(client);
    // Since when instances are gone. An id never comes back: a Node that is made again under it goes at the next look.
    let mut gone: BTreeMap<String, Instant> = BTreeMap::new();
    loop {
        let listed = nodes.list_metadata(&ListParams::default()).await;
        let listed = listed.context("could not list Nodes")?;
        let mut named: Vec<&PartialObjectMeta<Node>> = listed.items.iter().collect();
        named.retain(|node| is_instance(&node.name_any()) && node.name_any() != own);
        for some in named.chunks(CALL) {
            let names: Vec<String> = some.iter().map(|node| node.name_any()).collect();
            let Some(there) = there(&machine, own, &names).await? else {
                log.say(
                    STAGE,
                    Status::Failed,
                    None,
                    "EC2 does not know this machine: nothing is removed",
                );
                continue;
            };
            for node in some {
                let name = node.name_any();
                if there.contains(&name) {
                    gone.remove(&name);
                } else if let Some(since) = gone.get(&name) {
                    if since.elapsed() >= pace.gone {
                        remove(&nodes, node, log).await?;
                    }
                } else {
                    gone.insert(name, Instant::now());
                }
            }
        }
        tokio::time::sleep(pace.look).await;
    }
}

/// Those of the instances that EC2 knows and that are not terminated; `None` where its answer lacks our own. They are asked
/// for by their ids, so that a tag that somebody removed removes no Node. Terminated instances are described for about an
/// hour: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/terminating-instances.html>.
async fn there(
    machine: &Machine,
    own: &str,
    names: &[String],
) -> anyhow::Result<Option<BTreeSet<String>>> {
    let ids = names.iter().map(String::as_str).chain([own]);
    let ids: Vec<&str> = ids.collect();
    let instances = machine.instances(&[("instance-id", &ids)]).await?;
    let alive = instances
        .into_iter()
        .filter(|one| one.state != "terminated");
    let there: BTreeSet<String> = alive.map(|one| one.id).collect();
    Ok(there.contains(own).then_some(there))
}

/// Removes that Node and no other that was made under its name meanwhile. Finalizers go too: its kubelet's certificate may have
/// set some, so that the Node stays for ever, and whoever else did waits for a machine that is gone.
async fn remove(
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
        Err(error) => return refused(&name, error, log),
    };
    // It stays while it has finalizers, and gets no new ones:
    // https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/
    let held = stays.filter(|node| !node.finalizers().is_empty());
    if let Some(node) = held {
        return finalize(nodes, &node, log).await;
    }
    let detail = "removed: EC2 does not know its instance any more, or has terminated it";
    log.say(STAGE, Status::Finished, Some(&name), detail);
    Ok(())
}

/// Takes its finalizers from a Node that is being removed.
async fn finalize(nodes: &Api<Node>, node: &Node, log: &Log) -> anyhow::Result<()> {
    let name = node.name_any();
    let none = Patch::Merge(json!({ "metadata": { "uid": node.uid(), "finalizers": null } }));
    let parameters = PatchParams::default();
    match nodes.patch_metadata(&name, &parameters, &none).await {
        Ok(_) => {
            let finalizers = echo(&node.finalizers().join(", "));
            let detail = format!(
                "removed with its finalizers ({finalizers}): EC2 does not know its instance any more, or has terminated it"
            );
            log.say(STAGE, Status::Finished, Some(&name), &detail);
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(()),
        Err(error) => refused(&name, error, log),
    }
}

/// What the API refuses is told, and tried again at the next look.
fn refused(name: &str, error: kube::Error, log: &Log) -> anyhow::Result<()> {
    let kube::Error::Api(status) = error else {
        return Err(error).with_context(|| format!("could not remove {name}"));
    };
    let detail = format!("not removed: {}", echo(&status.message));
    log.say(STAGE, Status::Failed, Some(name), &detail);
    Ok(())
}
