//! etcd's static pods of a control plane.

use super::{ControlPlane, EtcdCluster, NodeConfig};
use crate::components::{EtcdMemberNames, EtcdStart, etcd_ports};
use crate::manifests::{self, EtcdPod, Pod};

/// The pods of the group's own members by name, as they are once their clusters are formed; `data` is the data folder on
/// the mounted volume, which protokube alone knows.
pub fn etcd_pods(config: &NodeConfig, data: &str) -> Vec<(String, Pod)> {
    let control_plane = config.control_plane.iter();
    let clusters = control_plane.flat_map(|of| &of.etcd);
    let pod = |etcd: &EtcdCluster| {
        let member = etcd_members(config, etcd).into_iter().next()?;
        let pod = etcd_pod(config, &etcd.name, &member, &EtcdStart::Existing, data)?;
        Some((pod.metadata.name.clone(), pod))
    };
    clusters.filter_map(pod).collect()
}

/// The members that machines of the group run, by name.
pub fn etcd_members(config: &NodeConfig, etcd: &EtcdCluster) -> Vec<String> {
    let members = etcd.members.iter();
    let own = members.filter(|member| member.group == config.group);
    own.map(|member| member.name.clone()).collect()
}

/// The pod of one member; `None` if there is no such etcd cluster.
pub fn etcd_pod(
    config: &NodeConfig,
    etcd: &str,
    member: &str,
    start: &EtcdStart,
    data: &str,
) -> Option<Pod> {
    let of: &ControlPlane = config.control_plane.as_ref()?;
    let etcd = of.etcd.iter().find(|one| one.name == etcd)?;
    Some(manifests::etcd(&EtcdPod {
        etcd,
        names: &EtcdMemberNames::of(etcd, &config.cluster),
        ports: etcd_ports(&etcd.name)?,
        member,
        start,
        data,
    }))
}
