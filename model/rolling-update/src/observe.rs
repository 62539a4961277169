//! Makes what a rolling update decides on from what is observed of a cluster: its fleet, its health, Nodes and pods.

use crate::quorum::reporting_instance;
use crate::{
    Condition, EtcdCluster, EtcdMember, Mark, Observed, RollingGroup, RollingInstance, RollingNode,
    Traffic, WarmInstance, resolve_surge, resolve_unavailable,
};
use drain::{Drain, drain_of, drained_since, pod_name};
use etcd_rules::ReportedMember;
use fleet::{FindingKind, Fleet, Health, InstanceStatus, Membership};
use k8s_openapi::api::core::v1 as k8s;
use node::config::Role;
use node::names::ROLLING_UPDATE_ANNOTATION;
use std::collections::{BTreeMap, BTreeSet};

/// Annotation of a Node that has to be replaced, whatever its launch template; as in kOps.
pub const NEEDS_UPDATE_ANNOTATION: &str = "kops.k8s.io/needs-update";

/// Taint that makes the scheduler prefer other Nodes; as in kOps.
pub const TAINT: &str = "kops.k8s.io/scheduled-for-update";

/// Value of [`drain::EXCLUDE_LABEL`] that a rolling update sets, so that it removes only its own.
pub const EXCLUDED_BY: &str = "rolling-update";

/// What the spec says about the rolling updates of a group to roll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLimits {
    /// Name of the instance group.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// `maxSurge`: a number or a percentage.
    pub max_surge: Option<String>,
    /// `maxUnavailable`: a number or a percentage.
    pub max_unavailable: Option<String>,
}

/// A cluster as it was read at one moment.
#[derive(Clone, Copy, Debug)]
pub struct ClusterState<'a> {
    /// The time, in seconds since 1970.
    pub now: i64,
    /// The fleet.
    pub fleet: &'a Fleet,
    /// The health of the fleet.
    pub health: &'a Health,
    /// All Nodes; empty if the API is not asked.
    pub nodes: &'a [k8s::Node],
    /// The pods of all namespaces.
    pub pods: &'a [k8s::Pod],
    /// For each etcd cluster its members and the instance group of each.
    pub etcd: &'a BTreeMap<String, Vec<(String, String)>>,
    /// What the members report in the state store.
    pub reports: &'a [ReportedMember],
    /// Whether clients are sent to an instance, for those that are targets of a load balancer.
    pub traffic: &'a BTreeMap<String, Traffic>,
}

/// Which instances to roll.
#[derive(Clone, Copy, Debug)]
pub struct Selection<'a> {
    /// The groups.
    pub groups: &'a [GroupLimits],
    /// Replace also instances that are current, if they were launched before this time, in seconds since 1970.
    pub launched_before: Option<i64>,
    /// Replace this instance, whether or not it is current, and no other.
    pub only: Option<&'a str>,
}

/// What a rolling update of these groups decides on.
pub fn observe(cluster: &ClusterState<'_>, selection: &Selection<'_>) -> Observed {
    let instances = cluster.fleet.instances.iter();
    let only = selection.only.map(|id| {
        let mut instances = cluster.fleet.instances.iter();
        instances
            .find(|one| one.instance.id == id)
            .map(InstanceStatus::group)
    });
    let is_selected = |group: &&GroupLimits| only.is_none_or(|only| only == Some(&group.name));
    let groups: Vec<&GroupLimits> = selection.groups.iter().filter(is_selected).collect();
    let names: BTreeSet<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    let rolled = instances.filter(|one| names.contains(one.group()));
    let (warm, rolled): (Vec<&InstanceStatus>, Vec<_>) =
        rolled.partition(|one| one.membership == Membership::WarmPool);
    Observed {
        now: cluster.now,
        groups: groups
            .into_iter()
            .filter_map(|group| rolling_group(cluster.fleet, group))
            .collect(),
        instances: rolled
            .into_iter()
            .map(|one| rolling_instance(cluster, selection, one))
            .collect(),
        warm: warm
            .into_iter()
            .map(|one| warm_instance(cluster.now, selection, one))
            .collect(),
        etcd: etcd_clusters(cluster),
        problems: problems(cluster, &names),
    }
}

fn rolling_group(fleet: &Fleet, limits: &GroupLimits) -> Option<RollingGroup> {
    let scaling = fleet.scaling_group(&limits.name)?;
    let desired = usize::try_from(scaling.desired).unwrap_or_default();
    let is_control_plane = limits.role == Role::ControlPlane;
    // Validation has refused a text that is neither a number nor a percentage.
    let surge = resolve_surge(limits.max_surge.as_deref(), desired).unwrap_or(1);
    let max_surge = if is_control_plane { 0 } else { surge };
    let unavailable = resolve_unavailable(limits.max_unavailable.as_deref(), desired, max_surge);
    let failure = fleet.launch_failures.get(&scaling.name);
    Some(RollingGroup {
        name: limits.name.clone(),
        role: limits.role,
        desired,
        max_surge,
        max_unavailable: unavailable.unwrap_or(1),
        launch_failure: failure.map(|failure| failure.message.clone()),
    })
}

fn rolling_instance(
    cluster: &ClusterState<'_>,
    selection: &Selection<'_>,
    status: &InstanceStatus,
) -> RollingInstance {
    let instance = &status.instance;
    let node = status.node.as_ref();
    let object = node.and_then(|node| {
        let mut all = cluster.nodes.iter();
        all.find(|object| object.metadata.name.as_deref() == Some(&node.name))
    });
    RollingInstance {
        id: instance.id.clone(),
        group: status.group().to_owned(),
        outdated: outdated_reason(cluster.now, selection, status, object),
        condition: condition(cluster, status),
        attached: instance.scaling_group.is_some(),
        node: object.map(|object| rolling_node(object, cluster.pods)),
        traffic: cluster
            .traffic
            .get(&instance.id)
            .copied()
            .unwrap_or(Traffic::Withdrawn),
        hook_waits: instance.lifecycle.as_deref() == Some("Terminating:Wait"),
        launched: instance.launched.unwrap_or(cluster.now),
    }
}

fn warm_instance(now: i64, selection: &Selection<'_>, status: &InstanceStatus) -> WarmInstance {
    let instance = &status.instance;
    WarmInstance {
        id: instance.id.clone(),
        group: status.group().to_owned(),
        outdated: outdated_reason(now, selection, status, None),
        leaving: instance.is_leaving(),
        hook_waits: instance.lifecycle.as_deref() == Some("Warmed:Terminating:Wait"),
    }
}

/// Why an instance has to be replaced: as `kctl get instances` says it, or because a rolling update has detached it, or
/// because its Node says so, or because all are replaced, or because it will get no Node.
fn outdated_reason(
    now: i64,
    selection: &Selection<'_>,
    status: &InstanceStatus,
    node: Option<&k8s::Node>,
) -> Option<String> {
    let instance = &status.instance;
    if let Some(only) = selection.only {
        return (only == instance.id).then(|| "it is named on the command line".to_owned());
    }
    if status.up_to_date.is_current() == Some(false) {
        return status.up_to_date.reason();
    }
    if instance.detached && instance.scaling_group.is_none() {
        return Some("a rolling update detached it from its Auto Scaling group".to_owned());
    }
    let annotations = node.and_then(|node| node.metadata.annotations.as_ref());
    if annotations.is_some_and(|all| all.contains_key(NEEDS_UPDATE_ANNOTATION)) {
        return Some(format!(
            "its Node has the annotation {NEEDS_UPDATE_ANNOTATION}"
        ));
    }
    let is_older = |before: i64| instance.launched.is_some_and(|launched| launched <= before);
    let forced = selection.launched_before.is_some_and(is_older);
    if forced {
        return Some("--force replaces every instance".to_owned());
    }
    // Starting kubelet again would not do: its new Node may get another range of pod addresses than the bridge, the routes and the files
    // of the network plugin on the instance have.
    status.has_lost_its_node(now).then(|| {
        "it has no Node and makes none: etcd was restored to a moment before it joined, or its kubelet cannot register".to_owned()
    })
}

fn condition(cluster: &ClusterState<'_>, status: &InstanceStatus) -> Condition {
    if status.instance.is_leaving() {
        return Condition::Leaving;
    }
    match status.membership {
        Membership::Ready => {
            let is_new = status.node.as_ref().is_some_and(|node| node.uninitialized);
            if is_new {
                Condition::Booting
            } else if status.is_control_plane() && has_finding(cluster.health, status) {
                Condition::NotReady
            } else {
                Condition::Ready
            }
        }
        Membership::NotReady => Condition::NotReady,
        // Its API server and its etcd member need no Node: control planes go one at a time, as if they were Ready.
        Membership::NotJoined if status.has_lost_its_node(cluster.now) => {
            if status.is_control_plane() {
                Condition::Ready
            } else {
                Condition::NotReady
            }
        }
        // Unknown: only AWS is asked (`--cloudonly`), and the API does not answer.
        Membership::Bastion | Membership::Unknown if status.instance.is_running() => {
            Condition::Ready
        }
        _ => Condition::Booting,
    }
}

/// True if the health check found something at the instance or its Node: a control plane without a component, for example.
fn has_finding(health: &Health, status: &InstanceStatus) -> bool {
    let node = status.node.as_ref().map(|node| node.name.as_str());
    let mut findings = health.findings.iter();
    findings.any(|finding| match finding.kind {
        FindingKind::Instance => finding.name == status.instance.id,
        FindingKind::Node => Some(finding.name.as_str()) == node,
        FindingKind::Api | FindingKind::InstanceGroup | FindingKind::Pod | FindingKind::Etcd => {
            false
        }
    })
}

fn rolling_node(node: &k8s::Node, pods: &[k8s::Pod]) -> RollingNode {
    let name = node.metadata.name.clone().unwrap_or_default();
    let spec = node.spec.as_ref();
    let taints = spec.and_then(|spec| spec.taints.as_deref());
    let annotations = node.metadata.annotations.as_ref();
    let mark = annotations.and_then(|all| all.get(ROLLING_UPDATE_ANNOTATION));
    let mark = mark.map(|mark| read_mark(mark));
    // A mark that cannot be read has no time.
    let begun = mark.as_ref().map(|mark| mark.since);
    let since = drained_since(node, begun.filter(|since| *since > 0));
    let on_it = pods.iter().filter(|pod| {
        let spec = pod.spec.as_ref();
        spec.and_then(|spec| spec.node_name.as_ref()) == Some(&name)
    });
    let with = |drain: Drain| {
        let all = on_it.clone();
        all.filter(move |pod| drain_of(pod, since) == drain)
    };
    RollingNode {
        cordoned: spec.and_then(|spec| spec.unschedulable) == Some(true),
        tainted: taints
            .unwrap_or_default()
            .iter()
            .any(|taint| taint.key == TAINT),
        mark,
        pods: with(Drain::Evict).map(pod_name).collect(),
        leaving_pods: with(Drain::Leaving).map(pod_name).collect(),
        name,
    }
}

/// A mark that cannot be read is one whose drain begins anew.
fn read_mark(text: &str) -> Mark {
    serde_json::from_str(text).unwrap_or_default()
}

/// The members by what the API shows: a member is healthy if its pod runs and protokube reports nothing about it. Which instance of
/// its group runs a member is what the instances report; what is not reported is assigned to the instances that are left.
fn etcd_clusters(cluster: &ClusterState<'_>) -> Vec<EtcdCluster> {
    let members = |etcd: &str, members: &[(String, String)]| -> Vec<EtcdMember> {
        let reporting = members
            .iter()
            .map(|(member, _)| reporting_instance(cluster.reports, etcd, member));
        let reporting: Vec<Option<&str>> = reporting.collect();
        let mut used: BTreeSet<&str> = reporting.iter().copied().flatten().collect();
        let mut all = Vec::new();
        for ((member, group), reported) in members.iter().zip(reporting) {
            let mut counted = cluster.fleet.counted_instances(group).into_iter();
            let found = counted.find(|one| {
                let id = one.instance.id.as_str();
                reported.map_or_else(|| !used.contains(id), |reported| reported == id)
            });
            used.extend(found.map(|one| one.instance.id.as_str()));
            all.push(EtcdMember {
                name: member.clone(),
                instance: found.map(|one| one.instance.id.clone()),
                problem: match found {
                    Some(one) => member_problem(cluster, one, etcd, reported),
                    None => Some("no instance of its group runs it".to_owned()),
                },
            });
        }
        all
    };
    let all = cluster.etcd.iter();
    all.map(|(name, of)| EtcdCluster {
        name: name.clone(),
        members: members(name, of),
    })
    .collect()
}

/// Why the member on an instance is not healthy. `reported`: the instance that reports the member lately.
fn member_problem(
    cluster: &ClusterState<'_>,
    status: &InstanceStatus,
    etcd: &str,
    reported: Option<&str>,
) -> Option<String> {
    let app = format!("etcd-{etcd}");
    let id = &status.instance.id;
    let Some(node) = status.node.as_ref().filter(|node| node.ready) else {
        // Without a Node the API shows no pods: that the member runs is what it reports itself.
        let reports_it = status.has_lost_its_node(cluster.now) && reported == Some(id.as_str());
        if !reports_it {
            return Some(format!("the Node of {id} is not Ready"));
        }
        return protokube_problem(status, &app);
    };
    let runs = |pod: &k8s::Pod| {
        let spec = pod.spec.as_ref();
        let labels = pod.metadata.labels.as_ref();
        let statuses = pod.status.as_ref();
        let containers = statuses.and_then(|status| status.container_statuses.as_deref());
        let containers = containers.unwrap_or_default();
        spec.and_then(|spec| spec.node_name.as_ref()) == Some(&node.name)
            && labels.and_then(|labels| labels.get("k8s-app")) == Some(&app)
            && !containers.is_empty()
            && containers.iter().all(|container| container.ready)
    };
    if !cluster.pods.iter().any(runs) {
        return Some(format!("its pod on {id} is not ready"));
    }
    protokube_problem(status, &app)
}

/// What protokube waits for or refuses in the role of an etcd member.
fn protokube_problem(status: &InstanceStatus, role: &str) -> Option<String> {
    let mut waits = fleet::unhealthy_waits(&status.waits);
    let wait = waits.find(|wait| wait.role == role)?;
    let id = &status.instance.id;
    Some(format!("protokube on {id}: {}", wait.message))
}

/// Findings of the health check but those about the groups to roll and their instances, on which [`crate::decide`] waits
/// by itself.
fn problems(cluster: &ClusterState<'_>, groups: &BTreeSet<&str>) -> BTreeMap<String, String> {
    let rolled: BTreeSet<&str> = cluster
        .fleet
        .instances
        .iter()
        .filter(|one| groups.contains(one.group()))
        .flat_map(|one| {
            let node = one.node.as_ref().map(|node| node.name.as_str());
            [Some(one.instance.id.as_str()), node].into_iter().flatten()
        })
        .collect();
    let findings = cluster.health.findings.iter().filter(|finding| {
        let name = finding.name.as_str();
        match finding.kind {
            FindingKind::InstanceGroup => !groups.contains(name),
            FindingKind::Instance | FindingKind::Node => !rolled.contains(name),
            FindingKind::Api | FindingKind::Pod => true,
            // Reports of members do not decide here: a silent instance must not stop its own replacement.
            FindingKind::Etcd => false,
        }
    });
    findings
        .map(|finding| {
            let key = format!("{}/{}", finding.kind.word(), finding.name);
            (key.clone(), format!("{key}: {}", finding.message))
        })
        .collect()
}

#[cfg(test)]
#[path = "observe_test.rs"]
mod tests;
