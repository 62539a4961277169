//! Role pod-ranges: on IPv6, gives each Node the range of its pods, which AWS delegates to the instance: a /80 of its subnet. Of the
//! control planes with a ready API server, the one with the first address does it. Two that both think so for a while do no harm:
//! the API server never changes the range of a Node, and a second one of an instance is not used.

use crate::names::ApiServers;
use crate::watch_events::{WATCH_SECONDS, wait_for_change};
use anyhow::Context;
use aws_client::ec2_query::{Ec2QueryClient, Instance};
use ipnet::Ipv6Net;
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, Patch, PatchParams, WatchParams};
use kube::{Api, Client, ResourceExt};
use node::bootstrap::{is_instance, untrusted_excerpt};
use node::names::CLUSTER_TAG;
use node::report::Status;
use protokube_role::log::Log;
use protokube_role::pace::{Sleep, sleep_for};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// Name of the role in log lines.
const STAGE: &str = "pod-ranges";
/// Largest number of instances in one call, besides the value of the tag (EC2: 200 values of filters in a call).
const BATCH_SIZE: usize = 199;

/// Intervals of the role.
#[derive(Clone, Copy, Debug)]
pub struct PodRangePace {
    /// Seconds after which a Node that got no range is tried again.
    pub again: u32,
    /// Time between looks whether this control plane is the one that gives ranges.
    pub idle: Duration,
    pub sleep: Sleep,
}

impl Default for PodRangePace {
    fn default() -> Self {
        Self {
            again: 10,
            idle: Duration::from_secs(15),
            sleep: sleep_for,
        }
    }
}

/// Inputs of the role.
pub struct PodRanges<'a, A> {
    pub client: Client,
    pub ec2: Ec2QueryClient,
    pub cluster: &'a str,
    /// List of ready API servers.
    pub servers: &'a A,
    /// Address of this instance in the family of the cluster.
    pub address: IpAddr,
    pub pace: PodRangePace,
    pub log: &'a Log,
}

/// Why Nodes have no range, by name.
type Problems = BTreeMap<String, String>;

impl<A: ApiServers> PodRanges<'_, A> {
    /// Gives ranges until a call of the API or a look-up of EC2 fails.
    pub async fn assign_ranges(&self) -> anyhow::Result<()> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let mut problems = Problems::new();
        loop {
            let ready = self.servers.ready_addresses().await?;
            if ready.is_none_or(|ready| ready.first() != Some(&self.address)) {
                (self.pace.sleep)(self.pace.idle).await;
                continue;
            }
            let listed = nodes.list(&ListParams::default()).await;
            let listed = listed.context("could not list Nodes")?;
            let version = listed.metadata.resource_version.unwrap_or_default();
            let lacking = listed.items.iter().filter(|node| lacks_range(node));
            let lacking: BTreeSet<String> = lacking.map(ResourceExt::name_any).collect();
            let before = problems;
            problems = self.assign_to(&nodes, &lacking).await?;
            for (node, problem) in &problems {
                if before.get(node) != Some(problem) {
                    self.log
                        .write_stage(STAGE, Status::Failed, Some(node), problem);
                }
            }
            let seconds = if problems.is_empty() {
                WATCH_SECONDS
            } else {
                self.pace.again
            };
            let watch = WatchParams::default().timeout(seconds);
            let watch = nodes.watch(&watch, &version).await;
            let watch = watch.context("could not watch Nodes")?;
            let is_new = |node: &Node| lacks_range(node) && !lacking.contains(&node.name_any());
            let changed = wait_for_change(watch, is_new).await;
            changed.context("could not watch Nodes")?;
        }
    }

    /// Gives each of these Nodes a range. Returns why some got none.
    async fn assign_to(
        &self,
        nodes: &Api<Node>,
        names: &BTreeSet<String>,
    ) -> anyhow::Result<Problems> {
        let tag = format!("tag:{CLUSTER_TAG}");
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut problems = Problems::new();
        for batch in names.chunks(BATCH_SIZE) {
            let filters: [(&str, &[&str]); 2] = [(&tag, &[self.cluster]), ("instance-id", batch)];
            let instances = self.ec2.describe_instances(&filters).await?;
            for name in batch {
                let instance = instances.iter().find(|instance| instance.id == *name);
                let given = match self.range_of(instance).await {
                    Ok(range) => self.set_range(nodes, name, range).await?,
                    Err(problem) => Err(problem),
                };
                problems.extend(given.err().map(|problem| ((*name).to_owned(), problem)));
            }
        }
        Ok(problems)
    }

    /// The range that the instance has, or else gets.
    async fn range_of(&self, instance: Option<&Instance>) -> Result<Ipv6Net, String> {
        let instance = instance.ok_or("EC2 does not show its instance in this cluster")?;
        let interface = instance.interface.as_ref();
        let interface = interface.ok_or("EC2 shows no network interface of its instance")?;
        if let Some(range) = interface.ipv6_prefixes.first() {
            return Ok(*range);
        }
        let assigned = self.ec2.assign_ipv6_prefix(&interface.id).await;
        assigned.map_err(|failure| failure.to_string())
    }

    /// Sets the range of a Node. The inner error is the API's reason for a rejection.
    async fn set_range(
        &self,
        nodes: &Api<Node>,
        name: &str,
        range: Ipv6Net,
    ) -> anyhow::Result<Result<(), String>> {
        let patch = Patch::Merge(json!({ "spec": { "podCIDR": range, "podCIDRs": [range] } }));
        match nodes.patch(name, &PatchParams::default(), &patch).await {
            Ok(_) => {
                let range = range.to_string();
                self.log
                    .write_stage(STAGE, Status::Finished, Some(name), &range);
                Ok(Ok(()))
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Ok(())),
            // Another control plane may have given it one.
            Err(kube::Error::Api(status)) => Ok(Err(untrusted_excerpt(&status.message))),
            Err(error) => Err(error).with_context(|| format!("could not change the Node {name}")),
        }
    }
}

/// True for the Node of an instance without a range for pods.
fn lacks_range(node: &Node) -> bool {
    let spec = node.spec.as_ref();
    let ranges = spec.and_then(|spec| spec.pod_cidrs.as_ref());
    is_instance(&node.name_any()) && ranges.is_none_or(Vec::is_empty)
}
