//! Instance groups: where they are, how many, which machines, what they are called.

use super::fill::{fill, overlay};
use super::machine_type::default_machine_type;
use super::machines::{arch_of_image, arch_of_type};
use super::volumes::{self, DEFAULT_TYPE};
use super::{Found, Known, labels};
use crate::api::cluster::ClusterSpec;
use crate::api::instance_group::InstanceGroupSpec;
use crate::api::subnet::ClusterSubnetSpec;
use crate::api::{InstanceGroup, InstanceGroupRole, SubnetType};
use crate::catalog::default_image;

/// Subnets of groups that name none: those of their zones, else for workers and bastions all but
/// utility subnets.
pub(super) fn place(groups: &mut [InstanceGroup], spec: &ClusterSpec, found: &mut Found) {
    for group in groups {
        let zones = &group.spec.zones;
        let worker = group.spec.role != Some(InstanceGroupRole::ControlPlane);
        if group.spec.subnets.is_empty() && (worker || !zones.is_empty()) {
            let subnets = spec.subnets.iter().filter(|subnet| {
                subnet.type_ != Some(SubnetType::Utility)
                    && (zones.is_empty() || zones.contains(&subnet.zone))
            });
            group.spec.subnets = subnets.map(|subnet| subnet.name.clone()).collect();
        }
        if group.spec.subnets.is_empty() {
            let hint = "name a subnet of the cluster";
            found.group_error(group, "spec.subnets", "a group needs a subnet", hint);
        }
        for index in 0..group.spec.subnets.len() {
            let name = group.spec.subnets.get(index);
            if let Some(name) = name.filter(|name| subnet(spec, name).is_none()) {
                let path = format!("spec.subnets[{index}]");
                let message = format!("the cluster has no subnet {name}");
                found.group_error(group, path, message, "name a subnet of the cluster");
            }
        }
    }
}

fn subnet<'a>(spec: &'a ClusterSpec, name: &str) -> Option<&'a ClusterSubnetSpec> {
    spec.subnets.iter().find(|subnet| subnet.name == name)
}

/// Zones of a group's subnets.
pub(super) fn zones<'a>(group: &InstanceGroup, spec: &'a ClusterSpec) -> Vec<&'a str> {
    let subnets = group.spec.subnets.iter();
    subnets
        .filter_map(|name| Some(subnet(spec, name)?.zone.as_str()))
        .collect()
}

/// Sizes, machines, volumes, labels and kubelet of every group.
pub(super) fn complete(
    groups: &mut [InstanceGroup],
    spec: &ClusterSpec,
    known: &Known,
    found: &mut Found,
) {
    for group in groups {
        let role = match group.spec.role {
            Some(InstanceGroupRole::ApiServer) => {
                found.group_error(
                    group,
                    "spec.role",
                    "kctl does not do this yet: groups that run kube-apiserver alone",
                    "use Master",
                );
                continue;
            }
            Some(role) => role,
            None => {
                let hint = "set it to Master, Node or Bastion";
                found.group_error(group, "spec.role", "a group needs a role", hint);
                continue;
            }
        };
        let zones = zones(group, spec);
        sizes(&mut group.spec, role);
        machines(group, role, &zones, known, found);
        root_volume(&mut group.spec, role);
        more_volumes(&mut group.spec);
        let metadata = group.spec.instance_metadata.get_or_insert_default();
        fill(&mut metadata.http_tokens, "required");
        fill(&mut metadata.http_put_response_hop_limit, 1);
        public_address(&mut group.spec, spec);
        kubelet(group, role, spec, found);
        runtime(group, found);
        group.spec.node_labels = labels::labels(group, role);
        labels::fill_taints(group);
    }
}

/// One machine, or two workers; a bound that was said moves the other.
fn sizes(group: &mut InstanceGroupSpec, role: InstanceGroupRole) {
    let default = if role == InstanceGroupRole::Node {
        2
    } else {
        1
    };
    let min = default.min(group.max_size.unwrap_or(default));
    fill(&mut group.min_size, min);
    let max = default.max(group.min_size.unwrap_or(default));
    fill(&mut group.max_size, max);
}

fn machines(
    group: &mut InstanceGroup,
    role: InstanceGroupRole,
    zones: &[&str],
    known: &Known,
    found: &mut Found,
) {
    let facts = known.facts;
    if group.spec.image.is_none() {
        let machine_type = group.spec.machine_type.as_deref().unwrap_or_default();
        group.spec.image = Some(default_image(arch_of_type(machine_type, facts)));
    }
    if group.spec.machine_type.is_none() {
        let image = group.spec.image.as_deref().unwrap_or_default();
        let arch = arch_of_image(image, facts);
        group.spec.machine_type = default_machine_type(role, arch, zones, facts);
        if group.spec.machine_type.is_none() {
            found.group_error(
                group,
                "spec.machineType",
                "no machine type that groups get by default is offered here",
                "name a machine type that all zones of the group offer",
            );
        }
    }
}

fn root_volume(group: &mut InstanceGroupSpec, role: InstanceGroupRole) {
    let size = match role {
        InstanceGroupRole::ControlPlane | InstanceGroupRole::ApiServer => 64,
        InstanceGroupRole::Node => 128,
        InstanceGroupRole::Bastion => 32,
    };
    fill(&mut group.root_volume_size, size);
    fill(&mut group.root_volume_type, DEFAULT_TYPE);
    fill(&mut group.root_volume_encryption, true);
    fill(&mut group.root_volume_delete_on_termination, true);
    let volume_type = group.root_volume_type.clone().unwrap_or_default();
    volumes::fill_performance(
        &volume_type,
        &mut group.root_volume_iops,
        &mut group.root_volume_throughput,
    );
}

fn more_volumes(group: &mut InstanceGroupSpec) {
    for volume in &mut group.volumes {
        fill(&mut volume.type_, DEFAULT_TYPE);
        fill(&mut volume.encrypted, true);
        fill(&mut volume.delete_on_termination, true);
        let volume_type = volume.type_.clone().unwrap_or_default();
        volumes::fill_performance(&volume_type, &mut volume.iops, &mut volume.throughput);
    }
}

/// Machines in public subnets get public addresses unless the group says no.
fn public_address(group: &mut InstanceGroupSpec, spec: &ClusterSpec) {
    let public = in_public_subnets(group, spec);
    fill(&mut group.associate_public_ip, public);
}

/// True if machines of a group can have public addresses.
pub(super) fn in_public_subnets(group: &InstanceGroupSpec, spec: &ClusterSpec) -> bool {
    let mut subnets = group.subnets.iter().filter_map(|name| subnet(spec, name));
    subnets.all(|subnet| matches!(subnet.type_, Some(SubnetType::Public | SubnetType::Utility)))
}

/// Downloads are the same for all groups.
fn runtime(group: &InstanceGroup, found: &mut Found) {
    let own = group.spec.containerd.as_ref().is_some_and(|containerd| {
        containerd.version.is_some() || containerd.packages.is_some() || containerd.runc.is_some()
    });
    if own {
        found.group_error(
            group,
            "spec.containerd",
            "kctl does not do this yet: a container runtime of one group's own",
            "set version, packages and runc in the cluster's spec.containerd",
        );
    }
}

/// What runs on the group's machines: the cluster's kubelet with the group's on top.
fn kubelet(
    group: &mut InstanceGroup,
    role: InstanceGroupRole,
    spec: &ClusterSpec,
    found: &mut Found,
) {
    let of_cluster = match role {
        InstanceGroupRole::Bastion => return,
        InstanceGroupRole::ControlPlane => &spec.master_kubelet,
        InstanceGroupRole::Node | InstanceGroupRole::ApiServer => &spec.kubelet,
    };
    let of_cluster = of_cluster.clone().unwrap_or_default();
    let of_group = group.spec.kubelet.clone().unwrap_or_default();
    match overlay(&of_cluster, &of_group) {
        Ok(merged) => group.spec.kubelet = Some(merged),
        Err(error) => found.group_error(group, "spec.kubelet", error.to_string(), "correct it"),
    }
}
