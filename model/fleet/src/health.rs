//! Whether a cluster is healthy: every group has its instances, every instance that should be a node is Ready, every
//! control plane runs its components, and the pods of critical priority run.

mod etcd;
mod groups;
mod ignored;
mod instances;
mod pods;

pub use ignored::{IgnoredProblem, NotIgnorable};

use crate::{ApiError, Fleet, Group, InstanceStatus, Node};
use serde::Serialize;

/// The numbers of an instance group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupHealth {
    pub name: String,
    /// Its role, `ControlPlane` for example.
    pub role: &'static str,
    /// Smallest number of instances: in AWS, or in the spec as long as the group is not in AWS.
    pub min: Option<i32>,
    /// Number that Auto Scaling aims for; `None` as long as the group is not in AWS.
    pub desired: Option<i32>,
    /// Largest number of instances, as `min`.
    pub max: Option<i32>,
    /// Instances that it has, without those in a warm pool or being terminated.
    #[serde(rename = "machines")]
    pub instances: usize,
    /// How many of them are Ready nodes; `None` if the API could not be asked, and for bastions.
    pub ready: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// What kind of object has the problem.
    pub kind: FindingKind,
    pub name: String,
    pub message: String,
    /// What to do about it, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The kind of object that has a problem. In JSON and tables an instance is a `machine`, as in `kops validate cluster`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    Api,
    InstanceGroup,
    #[serde(rename = "machine")]
    Instance,
    Node,
    Pod,
    /// An etcd cluster, `main`, or the member of it on an instance, `main/i-1`. Only `kctl validate` asks for these.
    Etcd,
}

impl FindingKind {
    /// The word of tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Api => "API",
            Self::InstanceGroup => "InstanceGroup",
            Self::Instance => "Machine",
            Self::Node => "Node",
            Self::Pod => "Pod",
            Self::Etcd => "etcd",
        }
    }
}

/// The health of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// True if there are no findings but ignored ones.
    pub healthy: bool,
    /// Why the API could not be asked.
    #[serde(rename = "trouble", skip_serializing_if = "Option::is_none")]
    pub api_error: Option<ApiError>,
    /// Instance groups in the order of the spec.
    pub groups: Vec<GroupHealth>,
    /// Nodes by name.
    pub nodes: Vec<Node>,
    /// Instances that should be nodes and are not known to be.
    pub not_joined: Vec<InstanceStatus>,
    /// All problems, causes before their consequences.
    pub findings: Vec<Finding>,
    /// Problems that the operator ignores.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<Finding>,
}

/// The health of a cluster with these instance groups.
pub fn check_health(groups: &[Group], fleet: &Fleet) -> Health {
    let api_error = fleet.nodes.as_ref().err().cloned();
    let findings = find_problems(groups, fleet);
    let mut nodes = fleet.nodes.clone().unwrap_or_default();
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    Health {
        healthy: findings.is_empty(),
        api_error,
        groups: groups
            .iter()
            .map(|group| groups::group_health(group, fleet))
            .collect(),
        nodes,
        not_joined: fleet.missing_nodes().cloned().collect(),
        findings,
        ignored: Vec::new(),
    }
}

/// What control planes wait for comes first: an API that does not answer and Nodes that are not Ready follow from it.
fn find_problems(groups: &[Group], fleet: &Fleet) -> Vec<Finding> {
    let all = fleet.instances.iter();
    let mut findings: Vec<Finding> = all.clone().flat_map(instances::wait_findings).collect();
    findings.extend(fleet.nodes.as_ref().err().map(api_finding));
    let lacking = |group: &Group| groups::group_finding(&group.name, fleet);
    findings.extend(groups.iter().filter_map(lacking));
    findings.extend(
        fleet
            .missing_nodes()
            .filter_map(instances::not_joined_finding),
    );
    findings.extend(all.flat_map(instances::node_findings));
    if fleet.nodes.is_ok() {
        findings.extend(pods::component_findings(&fleet.instances, &fleet.pods));
        findings.extend(pods::critical_pod_findings(&fleet.pods));
    }
    findings
}

fn api_finding(error: &ApiError) -> Finding {
    Finding {
        kind: FindingKind::Api,
        name: "kube-apiserver".to_owned(),
        message: error.message.clone(),
        next: Some(error.next.clone()),
    }
}

#[cfg(test)]
#[path = "health/health_test.rs"]
mod tests;
