//! What a member is run with, and what follows from it.

use crate::pace::Pace;
use anyhow::Context;
use node::components::{EtcdMemberNames, EtcdStart};
use node::config::{EtcdCluster, NodeConfig, etcd_members, etcd_pod};
use node::manifests::{Pod, manifest_path};
use std::sync::Arc;

/// What a member is run with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// NodeConfig.
    pub config: Arc<NodeConfig>,
    /// The etcd cluster, of NodeConfig.
    pub etcd: EtcdCluster,
    /// Where among names of devices to begin.
    pub first_device: usize,
    /// This machine, `i-...`.
    pub instance: String,
    /// Its availability zone.
    pub zone: String,
    /// Time between looks.
    pub pace: Pace,
    /// Makes a token that never was.
    pub token: fn() -> anyhow::Result<String>,
}

impl Settings {
    /// `etcd-main`, `etcd-events`.
    pub(super) fn pod_name(&self) -> String {
        format!("etcd-{}", self.etcd.name)
    }

    /// The link in kubelet's folder of manifests.
    pub(super) fn link(&self) -> String {
        manifest_path(&self.pod_name())
    }

    /// Names of all members.
    pub(super) fn names(&self) -> EtcdMemberNames {
        EtcdMemberNames::of(&self.etcd, &self.config.cluster)
    }

    /// The members that this machine's group may run.
    pub(super) fn own_members(&self) -> Vec<String> {
        etcd_members(&self.config, &self.etcd)
    }

    /// The pod of a member that starts like that, with its data in that folder.
    pub(super) fn pod(&self, member: &str, start: &EtcdStart, data: &str) -> anyhow::Result<Pod> {
        let name = &self.etcd.name;
        let pod = etcd_pod(&self.config, name, member, start, data);
        pod.with_context(|| format!("NodeConfig has no image of etcd {name}"))
    }
}
