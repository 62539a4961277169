//! The volumes of etcd members; protokube finds them by their tags.

use crate::{EtcdCluster, EtcdMember, FullSpec, cluster_tags};
use cloud::{Cloud, EbsVolume};
use node::names;

pub(super) fn build_etcd_volumes(full: &FullSpec) -> Vec<Cloud> {
    let of = |etcd| move |member| member_volume(full, etcd, member).into();
    full.etcd
        .iter()
        .flat_map(|etcd| etcd.members.iter().map(of(etcd)))
        .collect()
}

fn member_volume(full: &FullSpec, etcd: &EtcdCluster, member: &EtcdMember) -> EbsVolume {
    let name = names::etcd_volume(&full.name, &etcd.name, &member.name);
    let all = super::sort_unique(etcd.members.iter().map(|one| one.name.as_str())).join(",");
    let mut tags = cluster_tags(full, &name);
    tags.insert(
        format!("k8s.io/etcd/{}", etcd.name),
        format!("{}/{all}", member.name),
    );
    for role in ["control-plane", "master"] {
        tags.insert(format!("k8s.io/role/{role}"), "1".into());
    }
    EbsVolume {
        name,
        availability_zone: member.zone.clone(),
        size: member.volume_size,
        volume_type: member.volume_type.clone(),
        iops: member.volume_iops,
        throughput: member.volume_throughput,
        encrypted: member.encrypted,
        kms_key_id: member.kms_key_id.clone(),
        tags,
    }
}
