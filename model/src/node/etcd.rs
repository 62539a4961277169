//! etcd's static pods of a control plane.

use super::{ControlPlane, NodeConfig};
use crate::api::etcd::EtcdClusterSpec;
use crate::components::{EtcdMemberNames, EtcdStart, etcd_ports};
use crate::manifests::{self, EtcdPod, Pod};

/// The pods of the group's own members by name, as they are once their clusters are formed; `data` is the data folder on
/// the mounted volume, which protokube alone knows.
pub fn etcd_pods(config: &NodeConfig, data: &str) -> Vec<(String, Pod)> {
    let control_plane = config.control_plane.iter();
    let clusters = control_plane.flat_map(|of| of.etcd.iter().map(move |etcd| (of, etcd)));
    let pod = |(of, etcd): (&ControlPlane, &EtcdClusterSpec)| {
        let mut members = etcd.etcd_members.iter();
        let member = members.find(|member| member.instance_group == config.group)?;
        let pod = manifests::etcd(&EtcdPod {
            etcd,
            image: of.etcd_images.get(&etcd.name)?,
            names: &EtcdMemberNames::of(etcd, &config.cluster),
            ports: etcd_ports(&etcd.name)?,
            member: &member.name,
            start: &EtcdStart::Existing,
            data,
        });
        Some((pod.metadata.name.clone(), pod))
    };
    clusters.filter_map(pod).collect()
}
