//! The etcd clusters: versions, members and their volumes.

use super::etcd_clusters::etcd_clusters;
use super::fill::fill;
use super::volumes::{self, DEFAULT_TYPE};
use super::{Found, Known};
use crate::api::cluster::ClusterSpec;
use crate::api::etcd::{EtcdClusterSpec, EtcdMemberSpec};
use crate::api::{InstanceGroup, InstanceGroupRole};
use crate::full::{EtcdCluster, EtcdMember};
use crate::validate::versions::Version;

/// GiB of a member's volume.
const VOLUME_SIZE: i32 = 20;

/// The etcd version that goes with a Kubernetes version, as kOps pairs them.
fn version(kubernetes: &Version) -> &'static str {
    match kubernetes.minor {
        ..=33 => "3.5.31",
        34..=36 => "3.6.12",
        37.. => "3.7.0",
    }
}

/// Versions, requests, snapshots, and every member's volume. A spec without etcd clusters gets
/// those of a new cluster.
pub(super) fn complete(spec: &mut ClusterSpec, groups: &[InstanceGroup], known: &Known) {
    if spec.etcd_clusters.is_empty() {
        let control_planes: Vec<&str> = groups
            .iter()
            .filter(|group| group.spec.role == Some(InstanceGroupRole::ControlPlane))
            .map(InstanceGroup::name)
            .collect();
        spec.etcd_clusters = etcd_clusters(&["main", "events"], &control_planes, true, None);
    }
    let base = spec.config_base.as_deref().unwrap_or_default();
    let base = base.trim_end_matches('/').to_owned();
    for etcd in &mut spec.etcd_clusters {
        complete_cluster(etcd, &base, known);
        etcd.etcd_members.iter_mut().for_each(complete_member);
    }
}

fn complete_cluster(etcd: &mut EtcdClusterSpec, base: &str, known: &Known) {
    fill(&mut etcd.provider, "Manager");
    fill(&mut etcd.version, version(&known.version));
    let cpu = if etcd.name == "main" { "200m" } else { "100m" };
    fill(&mut etcd.cpu_request, cpu);
    fill(&mut etcd.memory_request, "100Mi");
    let backups = etcd.backups.get_or_insert_default();
    let store = format!("{base}/backups/etcd/{}", etcd.name);
    fill(&mut backups.backup_store, store);
    let manager = etcd.manager.get_or_insert_default();
    fill(&mut manager.backup_interval, "15m0s");
    fill(&mut manager.backup_retention_days, 90);
}

fn complete_member(member: &mut EtcdMemberSpec) {
    fill(&mut member.volume_type, DEFAULT_TYPE);
    fill(&mut member.volume_size, VOLUME_SIZE);
    // As kOps: only who asks gets it. `create` asks.
    fill(&mut member.encrypted_volume, false);
    let volume_type = member.volume_type.clone().unwrap_or_default();
    volumes::fill_performance(
        &volume_type,
        &mut member.volume_iops,
        &mut member.volume_throughput,
    );
}

/// The etcd clusters of a completed spec.
pub(super) fn full(
    spec: &ClusterSpec,
    groups: &[InstanceGroup],
    found: &mut Found,
) -> Option<Vec<EtcdCluster>> {
    let mut clusters = Vec::with_capacity(spec.etcd_clusters.len());
    for (index, etcd) in spec.etcd_clusters.iter().enumerate() {
        let path = format!("spec.etcdClusters[{index}]");
        let mut members = Vec::with_capacity(etcd.etcd_members.len());
        for (index, member) in etcd.etcd_members.iter().enumerate() {
            let path = format!("{path}.etcdMembers[{index}].instanceGroup");
            match zone(&member.instance_group, groups, spec) {
                Some(zone) => members.push(full_member(member, zone)),
                None => found.error(
                    path,
                    format!("no group {:?} with a subnet", member.instance_group),
                    "name a control-plane group of this cluster",
                ),
            }
        }
        clusters.push(EtcdCluster {
            name: etcd.name.clone(),
            version: bare(etcd.version.as_deref().unwrap_or_default()),
            members,
            cpu_request: etcd.cpu_request.clone().unwrap_or_default(),
            memory_request: etcd.memory_request.clone().unwrap_or_default(),
        });
    }
    (!found.has_errors()).then_some(clusters)
}

fn bare(version: &str) -> String {
    version.strip_prefix('v').unwrap_or(version).to_owned()
}

/// The zone of a group's first subnet: validation has seen that all are in it.
fn zone<'a>(group: &str, groups: &[InstanceGroup], spec: &'a ClusterSpec) -> Option<&'a str> {
    let group = groups.iter().find(|candidate| candidate.name() == group)?;
    let first = group.spec.subnets.first()?;
    let subnet = spec.subnets.iter().find(|subnet| subnet.name == *first)?;
    Some(&subnet.zone)
}

fn full_member(member: &EtcdMemberSpec, zone: &str) -> EtcdMember {
    let volume_type = member.volume_type.clone().unwrap_or_default();
    EtcdMember {
        name: member.name.clone(),
        group: member.instance_group.clone(),
        zone: zone.to_owned(),
        volume_size: member.volume_size.unwrap_or(VOLUME_SIZE),
        volume_iops: volumes::iops(&volume_type, member.volume_iops),
        volume_throughput: volumes::throughput(&volume_type, member.volume_throughput),
        volume_type,
        encrypted: member.encrypted_volume == Some(true),
        kms_key_id: member.kms_key_id.clone(),
    }
}
