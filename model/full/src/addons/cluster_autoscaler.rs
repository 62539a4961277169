//! The cluster autoscaler: adds instances to groups for pods that fit nowhere, and removes instances that are hardly used.

use super::control_planes::{
    controller_replicas, needs_host_network, rollout_strategy, tolerations,
};
use super::manifest::AddonName;
use super::permissions::change_own;
use super::{Addon, Error};
use crate::FullSpec;
use crate::iam::Statement;
use node::yaml::to_yaml;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use templates::Template;

/// Settings of the autoscaler: `spec.clusterAutoscaler`, and of the groups that it scales.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterAutoscaler {
    pub image: String,
    /// The program and its flags.
    pub command: Vec<String>,
    /// It chooses the group that grows by priorities, which are in a ConfigMap.
    pub by_priority: bool,
    /// The ConfigMap's: expressions for names of Auto Scaling groups by priority. `None`: the user makes the ConfigMap.
    pub priorities: Option<BTreeMap<String, Vec<String>>>,
    pub cpu_request: Option<String>,
    pub memory_request: Option<String>,
    /// Annotations of its pods.
    pub pod_annotations: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct Manifest {
    image: String,
    command: Vec<String>,
    by_priority: bool,
    makes_priorities: bool,
    priorities: String,
    requests: Value,
    pod_annotations: BTreeMap<String, String>,
    region: String,
    replicas: i32,
    host_network: Option<bool>,
    strategy: Option<Value>,
    tolerations: Vec<Value>,
}

impl Template for Manifest {
    const NAME: &'static str = "cluster_autoscaler/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("cluster_autoscaler/manifest.yaml.hbs");
}

pub(super) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let Some(autoscaler) = &full.addons.cluster_autoscaler else {
        return Ok(None);
    };
    let named = AddonName::new("cluster-autoscaler.addons.k8s.io", "k8s-1.15");
    let manifest = named.render_template(&make_manifest(full, autoscaler)?)?;
    named.make_addon(full, &[manifest]).map(Some)
}

fn make_manifest(full: &FullSpec, autoscaler: &ClusterAutoscaler) -> Result<Manifest, Error> {
    let scraped = [
        ("prometheus.io/port", "8085"),
        ("prometheus.io/scrape", "true"),
    ];
    let mut pod_annotations: BTreeMap<_, _> = scraped
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    pod_annotations.extend(autoscaler.pod_annotations.clone());
    let priorities = autoscaler.priorities.as_ref();
    Ok(Manifest {
        image: autoscaler.image.clone(),
        command: autoscaler.command.clone(),
        by_priority: autoscaler.by_priority,
        makes_priorities: priorities.is_some(),
        priorities: priorities.map_or(Ok(String::new()), priorities_text)?,
        requests: json!({
            "cpu": autoscaler.cpu_request.as_deref().unwrap_or("100m"),
            "memory": autoscaler.memory_request.as_deref().unwrap_or("300Mi"),
        }),
        pod_annotations,
        region: full.placement.region.clone(),
        replicas: controller_replicas(full),
        host_network: needs_host_network(full),
        strategy: rollout_strategy(full),
        tolerations: tolerations(full),
    })
}

/// A map of lists, whose keys are numbers.
fn priorities_text(priorities: &BTreeMap<String, Vec<String>>) -> Result<String, Error> {
    let mut text = String::new();
    let given = priorities.iter().filter(|(_, names)| !names.is_empty());
    for (priority, names) in given {
        text.push_str(priority);
        text.push_str(":\n");
        text.push_str(&to_yaml(names)?);
    }
    Ok(text)
}

/// What it calls, as in kOps: it changes only the cluster's own groups.
pub(super) fn permissions(full: &FullSpec) -> Vec<Statement> {
    if full.addons.cluster_autoscaler.is_none() {
        return Vec::new();
    }
    vec![
        Statement::allow([
            "autoscaling:DescribeAutoScalingGroups",
            "autoscaling:DescribeAutoScalingInstances",
            "autoscaling:DescribeLaunchConfigurations",
            "autoscaling:DescribeScalingActivities",
            "ec2:DescribeImages",
            "ec2:DescribeInstanceTypes",
            "ec2:DescribeLaunchTemplateVersions",
            "ec2:GetInstanceTypesFromInstanceRequirements",
        ])
        .on_all(),
        change_own(
            full,
            [
                "autoscaling:SetDesiredCapacity",
                "autoscaling:TerminateInstanceInAutoScalingGroup",
            ],
        )
        .on_all(),
    ]
}
