//! Labels of Nodes that kubelet may not set itself: its role's, and those that the tags of its instance say. A role that they
//! do not say is taken away: pods of the control plane go where its label is.

use crate::log::Log;
use crate::watching::{WATCH_SECONDS, until_changed};
use anyhow::Context;
use aws_client::machine::{Instance, Machine};
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, PartialObjectMeta, Patch, PatchParams, WatchParams};
use kube::{Api, Client, ResourceExt};
use node::bootstrap::{Labelling, echo, foreign_labels, is_instance, node_labels};
use node::config::Role;
use node::names::{self, CLUSTER_TAG};
use node::report::Status;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How protokube's lines call this part.
const STAGE: &str = "labels";
/// Tags are looked at again after this long.
pub const AGAIN: Duration = Duration::from_mins(5);
/// A Node whose instance EC2 did not know is asked for again after this long.
const UNKNOWN: Duration = Duration::from_secs(10);

/// Labels by name; `None`: it must not be there.
type Labels = BTreeMap<String, Option<String>>;

/// What EC2 said, and when it was asked.
struct Wanted {
    asked: Instant,
    of: BTreeMap<String, Labels>,
}

/// Labels Nodes for ever; that the API or EC2 cannot be asked ends it.
pub async fn run(client: Client, machine: Machine, cluster: &str, log: &Log) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(client);
    let mut wanted = look(&machine, cluster).await?;
    // Nodes that the API did not let be labelled, with what it said last: told once.
    let mut told: BTreeMap<String, String> = BTreeMap::new();
    loop {
        let listed = nodes.list_metadata(&ListParams::default()).await;
        let listed = listed.context("could not list Nodes")?;
        let version = listed.metadata.resource_version.unwrap_or_default();
        let age = wanted.asked.elapsed();
        if age >= AGAIN || (age >= UNKNOWN && is_unknown(&listed.items, &wanted)) {
            wanted = look(&machine, cluster).await?;
        }
        for node in &listed.items {
            label(&nodes, node, &wanted.of, &mut told, log).await?;
        }
        let seconds = if is_unknown(&listed.items, &wanted) {
            u32::try_from(UNKNOWN.as_secs())?
        } else {
            WATCH_SECONDS
        };
        let watch = WatchParams::default().timeout(seconds);
        let watch = nodes.watch_metadata(&watch, &version).await;
        let watch = watch.context("could not watch Nodes")?;
        let seen: BTreeSet<String> = listed.items.iter().map(ResourceExt::name_any).collect();
        let matters = |node: &PartialObjectMeta<Node>| {
            !seen.contains(&node.name_any()) || !differing(node, &wanted.of).is_empty()
        };
        let changed = until_changed(watch, matters).await;
        changed.context("could not watch Nodes")?;
    }
}

/// Whether EC2 did not know the instance of one of those Nodes. Others are nobody's instance.
fn is_unknown(nodes: &[PartialObjectMeta<Node>], wanted: &Wanted) -> bool {
    let mut names = nodes.iter().map(ResourceExt::name_any);
    names.any(|name| is_instance(&name) && !wanted.of.contains_key(&name))
}

/// The labels of every instance of the cluster; one call a page.
async fn look(machine: &Machine, cluster: &str) -> anyhow::Result<Wanted> {
    let tag = format!("tag:{CLUSTER_TAG}");
    let instances = machine.instances(&[(&tag, &[cluster])]).await?;
    Ok(Wanted {
        asked: Instant::now(),
        of: instances
            .into_iter()
            .map(|instance| {
                let labels = labels_of(&instance, cluster);
                (instance.id, labels)
            })
            .collect(),
    })
}

/// What EC2 says of the labels of a Node.
fn labels_of(instance: &Instance, cluster: &str) -> Labels {
    let of = Labelling {
        tags: &instance.tags,
        profile_of_nodes: instance.profile == Some(names::iam(cluster, Role::Node)),
    };
    let foreign = foreign_labels(of).into_iter().map(|label| (label, None));
    let own = node_labels(of).into_iter();
    foreign
        .chain(own.map(|(label, value)| (label, Some(value))))
        .collect()
}

/// What a Node lacks, has otherwise or must not have. Nodes are called after their instances.
fn differing(node: &PartialObjectMeta<Node>, wanted: &BTreeMap<String, Labels>) -> Labels {
    let has = node.labels();
    let wanted = wanted.get(&node.name_any()).into_iter().flatten();
    wanted
        .filter(|(label, value)| has.get(*label) != value.as_ref())
        .map(|(label, value)| (label.clone(), value.clone()))
        .collect()
}

async fn label(
    nodes: &Api<Node>,
    node: &PartialObjectMeta<Node>,
    wanted: &BTreeMap<String, Labels>,
    told: &mut BTreeMap<String, String>,
    log: &Log,
) -> anyhow::Result<()> {
    let name = node.name_any();
    let differing = differing(node, wanted);
    if differing.is_empty() {
        return Ok(());
    }
    let patch = Patch::Merge(json!({ "metadata": { "labels": differing } }));
    let parameters = PatchParams::default();
    match nodes.patch_metadata(&name, &parameters, &patch).await {
        Ok(_) => {
            // As kubectl writes labels, those too that it takes away.
            let said = |(label, value): (&String, &Option<String>)| match value {
                Some(value) => format!("{label}={value}"),
                None => format!("{label}-"),
            };
            let labels: Vec<String> = differing.iter().map(said).collect();
            log.say(STAGE, Status::Finished, Some(&name), &labels.join(", "));
        }
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        // A tag that cannot be a label, a Node that its kubelet has made too large: the other Nodes get theirs.
        Err(kube::Error::Api(status)) => {
            let why = format!("not labelled: {}", echo(&status.message));
            if told.insert(name.clone(), why.clone()).as_ref() != Some(&why) {
                log.say(STAGE, Status::Failed, Some(&name), &why);
            }
        }
        Err(error) => return Err(error).with_context(|| format!("could not label {name}")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_nobodys_instance_is_not_asked_for_again_and_again() {
        let nodes = |name: &str| {
            let node = json!({ "metadata": { "name": name } });
            vec![serde_json::from_value(node).unwrap()]
        };
        let none = Wanted {
            asked: Instant::now(),
            of: BTreeMap::new(),
        };
        assert!(is_unknown(&nodes("i-0123456789abcdef0"), &none));
        assert!(!is_unknown(&nodes("by-hand"), &none));
    }
}
