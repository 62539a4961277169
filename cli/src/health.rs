//! Whether a cluster is healthy: every machine that is wanted is a Ready node, every control plane runs its parts, and
//! the pods that everything rests on run. A pure function of what was gathered.

mod pods;

use crate::api::Trouble;
use crate::machines::{
    Gathered, Machine, Membership, NodeFacts, Source, Waiting, faults, role_name,
};
use serde::Serialize;
use spec::api::{InstanceGroup, InstanceGroupRole};
use spec::not_yet::NotYet;

/// An instance group, counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupHealth {
    /// Its name.
    pub name: String,
    /// What its machines do.
    pub role: &'static str,
    /// Lower bound: AWS', or the spec's before it is made.
    pub min: Option<i32>,
    /// What it aims for; none before it is made.
    pub desired: Option<i32>,
    /// Upper bound.
    pub max: Option<i32>,
    /// Machines it has, without those on their way out.
    pub machines: usize,
    /// How many of them are Ready nodes; none if the API could not be asked, or they are not to be nodes.
    pub ready: Option<usize>,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// What it is about.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it, if that can be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The API.
    Api,
    /// An instance group.
    InstanceGroup,
    /// A machine.
    Machine,
    /// A node.
    Node,
    /// A pod.
    Pod,
}

impl Kind {
    /// In a word, for tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Api => "API",
            Self::InstanceGroup => "InstanceGroup",
            Self::Machine => "Machine",
            Self::Node => "Node",
            Self::Pod => "Pod",
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// True if there are no findings.
    pub healthy: bool,
    /// The API's URL, as far as it is known.
    pub api: Option<String>,
    /// Why it could not be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
    /// Groups by name.
    pub groups: Vec<GroupHealth>,
    /// Nodes by name.
    pub nodes: Vec<NodeFacts>,
    /// Machines that should be nodes and are not, or of which that is not known.
    pub not_joined: Vec<Machine>,
    /// All that is wrong.
    pub findings: Vec<Finding>,
    /// What nobody does for the cluster yet.
    pub warnings: Vec<NotYet>,
}

/// The health of a cluster with those groups.
pub fn health(
    groups: &[InstanceGroup],
    gathered: &Gathered,
    api: Option<String>,
    warnings: Vec<NotYet>,
) -> Health {
    let nodes = gathered.nodes.as_deref().unwrap_or_default();
    let trouble = gathered.nodes.as_ref().err().cloned();
    // What a control plane waits for is what an API that does not answer and a Node that is not Ready follow from.
    let mut findings: Vec<Finding> = gathered.machines.iter().flat_map(of_waits).collect();
    findings.extend(trouble.iter().map(of_api));
    findings.extend(of_groups(groups, gathered));
    let not_joined = gathered.machines.iter().filter(|machine| {
        matches!(
            machine.membership,
            Membership::NotJoined | Membership::Unknown
        )
    });
    let not_joined: Vec<Machine> = not_joined.cloned().collect();
    findings.extend(not_joined.iter().filter_map(of_machine));
    findings.extend(gathered.machines.iter().flat_map(of_node));
    if trouble.is_none() {
        findings.extend(pods::of_control_planes(&gathered.machines, &gathered.pods));
        findings.extend(pods::of_critical(&gathered.pods));
    }
    let mut nodes = nodes.to_vec();
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    Health {
        healthy: findings.is_empty(),
        api,
        trouble,
        groups: counted(groups, gathered),
        nodes,
        not_joined,
        findings,
        warnings,
    }
}

fn of_api(trouble: &Trouble) -> Finding {
    Finding {
        kind: Kind::Api,
        name: "kube-apiserver".to_owned(),
        message: trouble.message.clone(),
        next: Some(trouble.next.clone()),
    }
}

fn counted(groups: &[InstanceGroup], gathered: &Gathered) -> Vec<GroupHealth> {
    let count = |group: &InstanceGroup| {
        let scaling = gathered
            .scaling_groups
            .iter()
            .find(|one| one.instance_group.as_deref() == Some(group.name()));
        let members = members(gathered, group.name());
        let ready = members
            .iter()
            .filter(|machine| machine.membership == Membership::Ready)
            .count();
        let bastions = group.spec.role == Some(InstanceGroupRole::Bastion);
        GroupHealth {
            name: group.name().to_owned(),
            role: role_name(group.spec.role),
            min: scaling.map(|one| one.min).or(group.spec.min_size),
            desired: scaling.map(|one| one.desired),
            max: scaling.map(|one| one.max).or(group.spec.max_size),
            machines: members.len(),
            ready: (gathered.nodes.is_ok() && !bastions).then_some(ready),
        }
    };
    groups.iter().map(count).collect()
}

/// Machines that a group can count on.
fn members<'a>(gathered: &'a Gathered, group: &str) -> Vec<&'a Machine> {
    let stays = |machine: &&Machine| {
        let lifecycle = machine.lifecycle.as_deref().unwrap_or_default();
        let waits_or_goes = lifecycle.starts_with("Warmed") || lifecycle.starts_with("Terminat");
        machine.group == group && !waits_or_goes && machine.state != "shutting-down"
    };
    gathered.machines.iter().filter(stays).collect()
}

fn of_groups(groups: &[InstanceGroup], gathered: &Gathered) -> Vec<Finding> {
    groups
        .iter()
        .filter_map(|group| of_group(group.name(), gathered))
        .collect()
}

/// A group that is not in AWS, or has fewer machines than it aims for, with AWS' reason.
fn of_group(name: &str, gathered: &Gathered) -> Option<Finding> {
    let finding = |message, next: &str| {
        Some(Finding {
            kind: Kind::InstanceGroup,
            name: name.to_owned(),
            message,
            next: Some(next.to_owned()),
        })
    };
    let scaling = gathered
        .scaling_groups
        .iter()
        .find(|one| one.instance_group.as_deref() == Some(name));
    let Some(scaling) = scaling else {
        return finding(
            "it is not in AWS yet".to_owned(),
            "make it: kctl update --yes",
        );
    };
    let has = members(gathered, name).len();
    if has >= usize::try_from(scaling.desired).unwrap_or_default() {
        return None;
    }
    let lacks = format!("it has {has} of {} machines", scaling.desired);
    if let Some(failure) = gathered.launch_failures.get(&scaling.name) {
        return finding(
            format!("{lacks}: {}", failure.message),
            next_of_launch(&failure.message),
        );
    }
    if scaling.suspended.iter().any(|process| process == "Launch") {
        return finding(
            format!("{lacks}: its Launch process is suspended"),
            "resume it: aws autoscaling resume-processes",
        );
    }
    finding(lacks, "AWS is launching them: wait")
}

/// What to do about a launch that failed. With an account's first group AWS makes Auto Scaling's own role, which nobody can assume for
/// some seconds: "Access denied when attempting to assume role ...AWSServiceRoleForAutoScaling" (pelias/kubernetes#32).
fn next_of_launch(message: &str) -> &'static str {
    if message.contains("assume role") && message.contains("AWSServiceRoleForAutoScaling") {
        "wait a few minutes: AWS makes this role with the account's first group, and the group tries again by itself"
    } else {
        "choose another machine type or zone, or mend what AWS names; the group tries again by itself"
    }
}

/// What protokube of a control plane waits for or refuses.
fn of_waits(machine: &Machine) -> impl Iterator<Item = Finding> {
    faults(&machine.waits).map(|one: &Waiting| Finding {
        kind: Kind::Machine,
        name: machine.id.clone(),
        message: format!("the control plane of {}: {}", machine.group, one.line()),
        next: one.next.clone(),
    })
}

/// A machine that should be a node and is none. Where the API cannot be asked only its error counts: the rest of it may
/// well have joined.
fn of_machine(machine: &Machine) -> Option<Finding> {
    let start = machine.start.as_ref();
    let said = start.is_some_and(|start| start.known_from == Source::Protokube);
    if said && faults(&machine.waits).next().is_some() {
        return None;
    }
    if machine.membership == Membership::Unknown && start.is_none_or(|start| start.error.is_none())
    {
        return None;
    }
    let line = start.map_or(String::new(), |start| {
        format!(": {} ({})", start.line(), start.known_from.word())
    });
    Some(Finding {
        kind: Kind::Machine,
        name: machine.id.clone(),
        message: format!("the machine of {} has not joined{line}", machine.group),
        next: start.and_then(|start| start.next.clone()),
    })
}

/// A node of the cluster's machines that cannot be used.
fn of_node(machine: &Machine) -> Vec<Finding> {
    let Some(node) = machine.node.as_ref() else {
        return Vec::new();
    };
    let finding = |message, next: &str| Finding {
        kind: Kind::Node,
        name: node.name.clone(),
        message,
        next: Some(next.to_owned()),
    };
    let mut found = Vec::new();
    if !node.ready {
        let reason = node.reason.as_deref().unwrap_or("no reason given");
        let next = format!("kubectl describe node {}", node.name);
        found.push(finding(format!("it is not Ready: {reason}"), &next));
    }
    if node.uninitialized {
        found.push(finding(
            "the cloud controller has not initialized it, so that nothing is scheduled there".to_owned(),
            "look at the cloud controller: kubectl --namespace kube-system logs --selector k8s-app=aws-cloud-controller-manager",
        ));
    }
    found
}

#[cfg(test)]
#[path = "health/health_test.rs"]
mod tests;
