//! All that was observed of a running cluster at one moment: the input of the health check.

use crate::{ApiError, InstanceStatus, LaunchFailure, Node, ScalingGroup};
use k8s_openapi::api::core::v1::Pod;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct Fleet {
    /// Auto Scaling groups by name.
    pub scaling_groups: Vec<ScalingGroup>,
    /// Instances by group and id.
    pub instances: Vec<InstanceStatus>,
    /// All Nodes, or why the API could not be asked.
    pub nodes: Result<Vec<Node>, ApiError>,
    /// Pods of the namespace kube-system, if they were asked for.
    pub pods: Vec<Pod>,
    /// The last launch failure of each group that has fewer instances than it wants, by name of the Auto Scaling group.
    pub launch_failures: BTreeMap<String, LaunchFailure>,
    /// What could not be read, one message each. The rest is complete without it.
    pub gaps: Vec<String>,
}

impl Fleet {
    /// The Auto Scaling group of an instance group.
    pub fn scaling_group(&self, instance_group: &str) -> Option<&ScalingGroup> {
        let mut groups = self.scaling_groups.iter();
        groups.find(|group| group.instance_group.as_deref() == Some(instance_group))
    }

    /// Instances that an instance group can count on: neither in a warm pool nor being terminated.
    pub fn counted_instances(&self, instance_group: &str) -> Vec<&InstanceStatus> {
        let instances = self.instances.iter();
        instances
            .filter(|one| one.group() == instance_group && one.is_counted())
            .collect()
    }

    /// Instances that should be nodes and are not known to be.
    pub fn missing_nodes(&self) -> impl Iterator<Item = &InstanceStatus> {
        let instances = self.instances.iter();
        instances.filter(|one| one.membership.is_missing())
    }
}
