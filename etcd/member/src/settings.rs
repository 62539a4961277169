//! Settings of a member, and names derived from them.

use anyhow::Context;
use node::components::{EtcdMemberNames, EtcdStart};
use node::config::{EtcdCluster, NodeConfig, etcd_members, etcd_pod};
use node::manifests::{Pod, manifest_path};
use protokube_role::pace::PollPace;
use std::sync::Arc;
use std::time::Duration;

/// Settings of a member.
#[derive(Clone, Debug)]
pub struct MemberSettings {
    /// NodeConfig of this instance.
    pub config: Arc<NodeConfig>,
    /// The etcd cluster in NodeConfig.
    pub etcd: EtcdCluster,
    /// Index of the first device name to try.
    pub first_device: usize,
    /// Id of this instance, `i-...`.
    pub instance: String,
    /// Availability zone of this instance.
    pub zone: String,
    pub pace: PollPace,
    /// Time after which EC2 is asked again whether a volume exists, before a member is replaced because it does not.
    pub confirm_after: Duration,
    /// Creates a new random token.
    pub token: fn() -> anyhow::Result<String>,
}

impl MemberSettings {
    /// Name of the pod: `etcd-main`, `etcd-events`.
    pub(super) fn pod_name(&self) -> String {
        format!("etcd-{}", self.etcd.name)
    }

    /// Path of the link in kubelet's folder of manifests.
    pub(super) fn manifest_link(&self) -> String {
        manifest_path(&self.pod_name())
    }

    /// Names of the cluster and its members.
    pub fn member_names(&self) -> EtcdMemberNames {
        EtcdMemberNames::from_config(&self.etcd, &self.config.cluster)
    }

    /// The members that instances of this group may run.
    pub(super) fn own_members(&self) -> Vec<String> {
        etcd_members(&self.config, &self.etcd)
    }

    /// The pod of a member with its data in the folder `data`.
    pub(super) fn build_pod(
        &self,
        member: &str,
        start: &EtcdStart,
        data: &str,
    ) -> anyhow::Result<Pod> {
        let name = &self.etcd.name;
        let pod = etcd_pod(&self.config, name, member, start, data);
        pod.with_context(|| format!("NodeConfig has no etcd cluster {name}"))
    }
}
