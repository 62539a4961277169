//! The static pods of etcd members in NodeConfig.

use super::{ControlPlane, EtcdCluster, NodeConfig};
use crate::components::{EtcdMemberNames, EtcdStart, etcd_ports};
use crate::manifests::{self, EtcdPod, Pod};

/// The pods of the group's members by name, as they are once the etcd clusters are formed. `data` is the data folder on the
/// mounted volume, which only protokube knows.
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

/// The names of the members that instances of the group run.
pub fn etcd_members(config: &NodeConfig, etcd: &EtcdCluster) -> Vec<String> {
    let members = etcd.members.iter();
    let own = members.filter(|member| member.group == config.group);
    own.map(|member| member.name.clone()).collect()
}

/// The pod of one member; `None` if NodeConfig has no such etcd cluster.
pub fn etcd_pod(
    config: &NodeConfig,
    etcd: &str,
    member: &str,
    start: &EtcdStart,
    data: &str,
) -> Option<Pod> {
    let of: &ControlPlane = config.control_plane.as_ref()?;
    let etcd = of.etcd.iter().find(|one| one.name == etcd)?;
    Some(manifests::build_etcd_pod(&EtcdPod {
        etcd,
        names: &EtcdMemberNames::from_config(etcd, &config.cluster),
        ports: etcd_ports(&etcd.name)?,
        member,
        start,
        data,
    }))
}
