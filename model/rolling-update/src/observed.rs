//! What is observed of a cluster at one moment of a rolling update.

use crate::quorum::EtcdCluster;
use node::config::Role;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that a decision rests on.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The time, in seconds since 1970.
    pub now: i64,
    /// The groups to roll, by name.
    pub groups: Vec<RollingGroup>,
    /// Their instances, by id; also those that a group no longer counts because they were detached from it.
    pub instances: Vec<RollingInstance>,
    /// The instances in their warm pools, by id. They count for nothing.
    pub warm: Vec<WarmInstance>,
    /// The etcd clusters; empty if there is nothing to be asked (`--cloudonly`).
    pub etcd: Vec<EtcdCluster>,
    /// Problems that the health check found, and that no instance of the groups to roll explains: text by a key that
    /// stays the same as long as the problem does.
    pub problems: BTreeMap<String, String>,
}

/// A group to roll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollingGroup {
    /// Its name.
    pub name: String,
    /// The role of its instances.
    pub role: Role,
    /// How many instances its Auto Scaling group wants.
    pub desired: usize,
    /// How many instances may be launched beyond that. Always 0 for control planes: etcd has as many members as zones.
    pub max_surge: usize,
    /// How many of the desired instances may be away at a time.
    pub max_unavailable: usize,
    /// Why its last launch failed, if it lacks instances.
    pub launch_failure: Option<String>,
}

/// An instance of a group to roll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollingInstance {
    /// `i-...`.
    pub id: String,
    /// Its group.
    pub group: String,
    /// Why it has to be replaced; `None` if it need not.
    pub outdated: Option<String>,
    /// How far it is.
    pub condition: Condition,
    /// True while its Auto Scaling group counts it.
    pub attached: bool,
    /// Its Node, if it has one.
    pub node: Option<RollingNode>,
    /// Whether clients of the API are still sent to it; `Withdrawn` for instances that serve none.
    pub traffic: Traffic,
    /// True if its termination waits for the lifecycle hook of its group.
    pub hook_waits: bool,
    /// When it was launched, in seconds since 1970.
    pub launched: i64,
}

/// An instance in the warm pool of a group to roll: it has no Node and no pods, so nothing is drained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmInstance {
    /// `i-...`.
    pub id: String,
    /// Its group.
    pub group: String,
    /// Why it has to be replaced; `None` if it need not.
    pub outdated: Option<String>,
    /// True once Auto Scaling or EC2 terminates it.
    pub leaving: bool,
    /// True if its termination waits for the lifecycle hook of its group.
    pub hook_waits: bool,
}

impl WarmInstance {
    /// True if it has to be replaced and its termination has not begun.
    pub fn is_outdated(&self) -> bool {
        self.outdated.is_some() && !self.leaving
    }
}

/// How far an instance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Launched, and not Ready yet.
    Booting,
    /// Ready; for an instance that is never a node, running.
    Ready,
    /// It was Ready, and is not.
    NotReady,
    /// Auto Scaling or EC2 terminates it.
    Leaving,
}

/// The Node of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RollingNode {
    /// Its name.
    pub name: String,
    /// True if it is cordoned.
    pub cordoned: bool,
    /// True if it has the taint that steers pods to nodes that stay.
    pub tainted: bool,
    /// The mark of a rolling update, this one's or one's that was interrupted.
    pub mark: Option<Mark>,
    /// Pods that have to leave before it is terminated, `NAMESPACE/NAME`, without those on their way out.
    pub pods: Vec<String>,
    /// Pods on their way out, `NAMESPACE/NAME`.
    pub leaving_pods: Vec<String>,
}

/// What a rolling update writes on a Node before it drains it. Any rolling update goes on with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// The operation that began.
    pub operation: String,
    /// When the drain began, in seconds since 1970: pods that were made later have come back.
    pub since: i64,
    /// True if somebody had cordoned the Node before: it stays cordoned.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_cordoned: bool,
    /// When the last pod had left, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drained: Option<i64>,
}

/// Whether clients of the API reach an instance by name or through a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// They may be sent to it.
    Served,
    /// No new ones are sent to it, but some may still know it: a target that drains, a name within its TTL.
    Draining,
    /// None are.
    Withdrawn,
    /// None are, though it goes on serving: Auto Scaling took it out of its target groups when it was detached.
    Lost,
}

impl RollingInstance {
    /// True if it serves, and no rolling update takes it away. One that a person cordoned serves what it runs.
    pub fn is_available(&self) -> bool {
        self.condition == Condition::Ready && self.mark().is_none()
    }

    /// True if it takes new pods.
    pub fn is_schedulable(&self) -> bool {
        self.is_available() && self.node.as_ref().is_some_and(|node| !node.cordoned)
    }

    /// The mark on its Node.
    pub fn mark(&self) -> Option<&Mark> {
        self.node.as_ref().and_then(|node| node.mark.as_ref())
    }

    /// True if it has to be replaced and its termination has not begun.
    pub fn is_outdated(&self) -> bool {
        self.outdated.is_some() && self.condition != Condition::Leaving
    }

    /// True while it is being taken away: drained, or terminated.
    pub fn is_under_way(&self) -> bool {
        self.condition == Condition::Leaving || self.mark().is_some()
    }
}
