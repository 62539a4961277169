//! All that is known of one instance: from AWS, from its Node, and where it matters from its boot report, its console
//! and what protokube waits for.

use crate::instance_json::InstanceJson;
use crate::membership::membership;
use crate::{
    AwsFleet, BootStage, Group, Instance, Membership, Node, RoleWait, UpToDate, unhealthy_waits,
    up_to_date,
};
use node::config::Role;
use serde::Serialize;
use std::collections::BTreeMap;

/// An instance with its node and its boot.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "InstanceJson")]
pub struct InstanceStatus {
    /// What AWS says.
    pub instance: Instance,
    /// Its group's role; `None` if the spec has no such group.
    pub role: Option<Role>,
    /// Whether it was launched from what its group launches now.
    pub up_to_date: UpToDate,
    /// Whether it is a node.
    pub membership: Membership,
    /// Its Node, if it has joined.
    pub node: Option<Node>,
    /// How far its boot came, if it has not joined or that is not known.
    pub boot: Option<BootStage>,
    /// What protokube of a control plane waits for or refuses, joined or not, causes first.
    pub waits: Vec<RoleWait>,
}

impl InstanceStatus {
    /// Its instance group's name; empty if unknown.
    pub fn group(&self) -> &str {
        self.instance.instance_group.as_deref().unwrap_or_default()
    }

    /// True if it runs etcd or the API server.
    pub fn is_control_plane(&self) -> bool {
        self.role == Some(Role::ControlPlane)
    }

    /// True if its group can count on it: it is neither in a warm pool nor being terminated.
    pub fn counts(&self) -> bool {
        !self.instance.is_in_warm_pool() && !self.instance.is_leaving()
    }

    /// True if the state store may have what its protokube waits for.
    pub fn has_waits(&self) -> bool {
        self.is_control_plane() && self.instance.is_running() && self.counts()
    }

    /// True if nothing newer than its boot report has to be read: the report has an error; or it has none and the API
    /// cannot be asked, so that the instance has most likely joined. The latter does not hold for a control plane,
    /// whose protokube may be the reason why the API does not answer.
    pub fn is_explained_by(&self, report: &BootStage) -> bool {
        let probably_joined = self.membership == Membership::Unknown && !self.is_control_plane();
        report.error.is_some() || probably_joined
    }

    /// What to do about what keeps it from joining, or else about what its protokube reports.
    pub fn next_step(&self) -> Option<String> {
        match &self.boot {
            Some(boot) => boot.error.as_ref().and(boot.next.clone()),
            None => unhealthy_waits(&self.waits).find_map(|wait| wait.next.clone()),
        }
    }
}

/// The status of every instance in AWS, without boot stages and waits. `nodes` are all Nodes; `None` if the API could
/// not be asked.
pub fn instance_statuses(
    aws: &AwsFleet,
    groups: &[Group],
    nodes: Option<&[Node]>,
) -> Vec<InstanceStatus> {
    let status = |instance: &Instance| {
        let group = groups
            .iter()
            .find(|group| Some(&group.name) == instance.instance_group.as_ref());
        let role = group.and_then(|group| group.role);
        let node = nodes.and_then(|nodes| nodes.iter().find(|node| node.is_on(instance)));
        InstanceStatus {
            instance: instance.clone(),
            role,
            up_to_date: up_to_date(instance, &aws.scaling_groups),
            membership: membership(instance, role, nodes),
            node: node.cloned(),
            boot: None,
            waits: Vec::new(),
        }
    };
    aws.instances.iter().map(status).collect()
}

/// Where one of these instances waits for a volume that another one has: adds what Auto Scaling does with the other one,
/// which protokube need not know.
pub fn append_holders(statuses: &mut [InstanceStatus]) {
    let instances: Vec<Instance> = statuses.iter().map(|one| one.instance.clone()).collect();
    let instances: BTreeMap<&str, &Instance> = instances
        .iter()
        .map(|instance| (instance.id.as_str(), instance))
        .collect();
    for status in statuses {
        let waits = status.waits.iter_mut();
        waits.for_each(|wait| wait.append_holder(&instances));
        if let Some(boot) = &mut status.boot {
            boot.append_holder(&instances);
        }
    }
}
