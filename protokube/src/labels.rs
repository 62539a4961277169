//! Role labels: sets labels on Nodes that kubelet may not set itself: those of roles, and those in the tags of the instance. Role
//! labels that do not match the tags are removed, because pods of the control plane select nodes by them. Also takes the marks of a
//! termination away from Nodes that were uncordoned.

use crate::uncordon::release_uncordoned;
use crate::watch_events::{WATCH_SECONDS, wait_for_change};
use anyhow::Context;
use aws_client::ec2_query::{Ec2QueryClient, Instance};
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, PartialObjectMeta, Patch, PatchParams, WatchParams};
use kube::{Api, Client, ResourceExt};
use node::bootstrap::{LabelSource, foreign_labels, is_instance, node_labels, untrusted_excerpt};
use node::config::Role;
use node::names::{self, CLUSTER_TAG};
use node::report::Status;
use protokube_role::log::Log;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Name of the role in log lines.
const STAGE: &str = "labels";
/// Time after which tags are read again.
pub const REFRESH_INTERVAL: Duration = Duration::from_mins(5);
/// Time after which EC2 is asked again about a Node whose instance it did not know.
const UNKNOWN: Duration = Duration::from_secs(10);

/// Desired labels by name; `None` for a label that must not exist.
type Labels = BTreeMap<String, Option<String>>;

/// Desired labels of all Nodes, and when EC2 was asked.
struct DesiredLabels {
    requested_at: Instant,
    labels_by_node: BTreeMap<String, Labels>,
}

/// Labels Nodes until a call of the API or EC2 fails.
pub async fn label_nodes(
    client: Client,
    ec2: Ec2QueryClient,
    cluster: &str,
    log: &Log,
) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let mut wanted = read_desired_labels(&ec2, cluster).await?;
    // Last error of each Node that the API refused to label; logged once.
    let mut logged_refusals: BTreeMap<String, String> = BTreeMap::new();
    loop {
        let listed = nodes.list_metadata(&ListParams::default()).await;
        let listed = listed.context("could not list Nodes")?;
        let version = listed.metadata.resource_version.unwrap_or_default();
        let age = wanted.requested_at.elapsed();
        if age >= REFRESH_INTERVAL || (age >= UNKNOWN && is_unknown(&listed.items, &wanted)) {
            wanted = read_desired_labels(&ec2, cluster).await?;
        }
        for node in &listed.items {
            label_node(
                &nodes,
                node,
                &wanted.labels_by_node,
                &mut logged_refusals,
                log,
            )
            .await?;
        }
        release_uncordoned(&client, &listed.items, STAGE, log).await?;
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
            !seen.contains(&node.name_any())
                || !differing_labels(node, &wanted.labels_by_node).is_empty()
        };
        let changed = wait_for_change(watch, matters).await;
        changed.context("could not watch Nodes")?;
    }
}

/// True if EC2 did not know the instance of one of the Nodes. Nodes that are not instances do not count.
fn is_unknown(nodes: &[PartialObjectMeta<Node>], wanted: &DesiredLabels) -> bool {
    let mut names = nodes.iter().map(ResourceExt::name_any);
    names.any(|name| is_instance(&name) && !wanted.labels_by_node.contains_key(&name))
}

/// Reads the desired labels of all instances of the cluster, with one call per page.
async fn read_desired_labels(ec2: &Ec2QueryClient, cluster: &str) -> anyhow::Result<DesiredLabels> {
    let tag = format!("tag:{CLUSTER_TAG}");
    let instances = ec2.describe_instances(&[(&tag, &[cluster])]).await?;
    Ok(DesiredLabels {
        requested_at: Instant::now(),
        labels_by_node: instances
            .into_iter()
            .map(|instance| {
                let labels = labels_of(&instance, cluster);
                (instance.id, labels)
            })
            .collect(),
    })
}

/// The desired labels of an instance's Node.
fn labels_of(instance: &Instance, cluster: &str) -> Labels {
    let source = LabelSource {
        tags: &instance.tags,
        profile_of_nodes: instance.profile == Some(names::iam_name(cluster, Role::Node)),
    };
    let foreign = foreign_labels(source)
        .into_iter()
        .map(|label| (label, None));
    let own = node_labels(source).into_iter();
    foreign
        .chain(own.map(|(label, value)| (label, Some(value))))
        .collect()
}

/// The labels of a Node that differ from the desired ones. The name of a Node is its instance id.
fn differing_labels(node: &PartialObjectMeta<Node>, wanted: &BTreeMap<String, Labels>) -> Labels {
    let has = node.labels();
    let wanted = wanted.get(&node.name_any()).into_iter().flatten();
    wanted
        .filter(|(label, value)| has.get(*label) != value.as_ref())
        .map(|(label, value)| (label.clone(), value.clone()))
        .collect()
}

async fn label_node(
    nodes: &Api<Node>,
    node: &PartialObjectMeta<Node>,
    wanted: &BTreeMap<String, Labels>,
    logged_refusals: &mut BTreeMap<String, String>,
    log: &Log,
) -> anyhow::Result<()> {
    let name = node.name_any();
    let differing = differing_labels(node, wanted);
    if differing.is_empty() {
        return Ok(());
    }
    let patch = Patch::Merge(json!({ "metadata": { "labels": differing } }));
    let parameters = PatchParams::default();
    match nodes.patch_metadata(&name, &parameters, &patch).await {
        Ok(_) => {
            // The notation of kubectl label; `-` marks a removed label.
            let label_text = |(label, value): (&String, &Option<String>)| match value {
                Some(value) => format!("{label}={value}"),
                None => format!("{label}-"),
            };
            let labels: Vec<String> = differing.iter().map(label_text).collect();
            log.write_stage(STAGE, Status::Finished, Some(&name), &labels.join(", "));
        }
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        // For example an invalid label in a tag, or a Node that is too large. Other Nodes are labelled anyway.
        Err(kube::Error::Api(status)) => {
            let why = format!("not labelled: {}", untrusted_excerpt(&status.message));
            if logged_refusals.insert(name.clone(), why.clone()).as_ref() != Some(&why) {
                log.write_stage(STAGE, Status::Failed, Some(&name), &why);
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
        let none = DesiredLabels {
            requested_at: Instant::now(),
            labels_by_node: BTreeMap::new(),
        };
        assert!(is_unknown(&nodes("i-0123456789abcdef0"), &none));
        assert!(!is_unknown(&nodes("by-hand"), &none));
    }
}
