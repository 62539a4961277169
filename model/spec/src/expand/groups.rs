//! Defaults of instance groups: subnets, sizes, images, instance types, volumes, labels and kubelet.

use super::fill::{fill, overlay_fields};
use super::instances::{arch_of_image, arch_of_type};
use super::machine_type::default_machine_type;
use super::reservations::check_reservations;
use super::volumes::{self, DEFAULT_TYPE};
use super::{Context, Findings, containerd, labels};
use crate::api::cluster::ClusterSpec;
use crate::api::instance_group::InstanceGroupSpec;
use crate::api::kubelet::KubeletConfigSpec;
use crate::api::subnet::ClusterSubnetSpec;
use crate::api::{InstanceGroup, InstanceGroupRole, SubnetType};
use crate::catalog::default_image;
use crate::validate::ipv6::subnet_faults;
use crate::validate::removed_flags::drop_idle_flags;
use crate::validate::values::signal_without_grace;

/// Fills in the subnets of groups that name none: those in the group's zones; for workers and bastions
/// without zones, all but utility subnets. Dual-stack subnets are for control planes, which have no use for others in the same zones.
pub(super) fn assign_subnets(
    groups: &mut [InstanceGroup],
    spec: &ClusterSpec,
    context: &Context,
    findings: &mut Findings,
) {
    for group in groups {
        let zones = &group.spec.zones;
        let worker = group.spec.role != Some(InstanceGroupRole::ControlPlane);
        if group.spec.subnets.is_empty() && (worker || !zones.is_empty()) {
            let other = if worker {
                SubnetType::DualStack
            } else {
                SubnetType::Private
            };
            let dual = |subnet: &ClusterSubnetSpec| subnet.type_ == Some(SubnetType::DualStack);
            let some_dual = spec.subnets.iter().any(dual);
            let subnets = spec.subnets.iter().filter(|subnet| {
                subnet.type_ != Some(SubnetType::Utility)
                    && !(some_dual && subnet.type_ == Some(other))
                    && (zones.is_empty() || zones.contains(&subnet.zone))
            });
            group.spec.subnets = subnets.map(|subnet| subnet.name.clone()).collect();
        }
        let chosen = subnet_faults(&group.spec, spec, Some(context.facts));
        for (index, message, hint) in chosen {
            findings.add_group_error(group, format!("spec.subnets[{index}]"), message, hint);
        }
        if group.spec.subnets.is_empty() {
            let hint = "name a subnet of the cluster";
            findings.add_group_error(group, "spec.subnets", "a group needs a subnet", hint);
        }
        for index in 0..group.spec.subnets.len() {
            let name = group.spec.subnets.get(index);
            if let Some(name) = name.filter(|name| find_subnet(spec, name).is_none()) {
                let path = format!("spec.subnets[{index}]");
                let message = format!("the cluster has no subnet {name}");
                findings.add_group_error(group, path, message, "name a subnet of the cluster");
            }
        }
    }
}

fn find_subnet<'a>(spec: &'a ClusterSpec, name: &str) -> Option<&'a ClusterSubnetSpec> {
    spec.subnets.iter().find(|subnet| subnet.name == name)
}

/// The zones of a group's subnets, in the subnets' order.
pub(super) fn group_zones<'a>(group: &InstanceGroup, spec: &'a ClusterSpec) -> Vec<&'a str> {
    let subnets = group.spec.subnets.iter();
    subnets
        .filter_map(|name| Some(find_subnet(spec, name)?.zone.as_str()))
        .collect()
}

/// Fills in all other defaults of every group.
pub(super) fn complete_groups(
    groups: &mut [InstanceGroup],
    spec: &ClusterSpec,
    context: &Context,
    findings: &mut Findings,
) {
    for group in groups {
        let role = match group.spec.role {
            Some(InstanceGroupRole::ApiServer) => {
                findings.add_group_error(
                    group,
                    "spec.role",
                    "kctl does not support groups of role APIServer",
                    "remove the group: API servers run in groups of role ControlPlane",
                );
                continue;
            }
            Some(role) => role,
            None => {
                let hint = "set it to ControlPlane, Node or Bastion";
                findings.add_group_error(group, "spec.role", "a group needs a role", hint);
                continue;
            }
        };
        let zones = group_zones(group, spec);
        fill_sizes(&mut group.spec, role);
        fill_image_and_type(group, role, &zones, context, findings);
        fill_root_volume(&mut group.spec, role);
        fill_additional_volumes(&mut group.spec);
        let metadata = group.spec.instance_metadata.get_or_insert_default();
        fill(&mut metadata.http_tokens, "required");
        fill(&mut metadata.http_put_response_hop_limit, 1);
        fill_public_address(&mut group.spec, spec);
        merge_kubelet(group, role, spec, context, findings);
        check_container_runtime(group, findings);
        group.spec.node_labels = labels::node_labels(group, role);
        labels::fill_taints(group);
        containerd::complete_runtimes(group, spec, context, findings);
    }
}

/// Fills in the sizes: one instance, or two for workers. A bound that is set moves the other one.
fn fill_sizes(group: &mut InstanceGroupSpec, role: InstanceGroupRole) {
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

fn fill_image_and_type(
    group: &mut InstanceGroup,
    role: InstanceGroupRole,
    zones: &[&str],
    context: &Context,
    findings: &mut Findings,
) {
    let facts = context.facts;
    if group.spec.image.is_none() {
        let machine_type = group.spec.machine_type.as_deref().unwrap_or_default();
        group.spec.image = Some(default_image(arch_of_type(machine_type, facts)));
    }
    if group.spec.machine_type.is_none() {
        let image = group.spec.image.as_deref().unwrap_or_default();
        let arch = arch_of_image(image, facts);
        group.spec.machine_type = default_machine_type(role, arch, zones, facts);
        if group.spec.machine_type.is_none() {
            findings.add_group_error(
                group,
                "spec.machineType",
                "none of the default instance types is offered in all zones of the group",
                "name an instance type that all zones of the group offer",
            );
        }
    }
}

fn fill_root_volume(group: &mut InstanceGroupSpec, role: InstanceGroupRole) {
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

fn fill_additional_volumes(group: &mut InstanceGroupSpec) {
    for volume in &mut group.volumes {
        fill(&mut volume.type_, DEFAULT_TYPE);
        fill(&mut volume.encrypted, true);
        fill(&mut volume.delete_on_termination, true);
        let volume_type = volume.type_.clone().unwrap_or_default();
        volumes::fill_performance(&volume_type, &mut volume.iops, &mut volume.throughput);
    }
}

/// Instances in public subnets get public addresses unless the group sets otherwise.
fn fill_public_address(group: &mut InstanceGroupSpec, spec: &ClusterSpec) {
    let public = in_public_subnets(group, spec);
    fill(&mut group.associate_public_ip, public);
}

/// True if all subnets of the group are public, so that public addresses work.
pub(super) fn in_public_subnets(group: &InstanceGroupSpec, spec: &ClusterSpec) -> bool {
    let mut subnets = group
        .subnets
        .iter()
        .filter_map(|name| find_subnet(spec, name));
    subnets.all(|subnet| matches!(subnet.type_, Some(SubnetType::Public | SubnetType::Utility)))
}

/// Reports a group with its own container runtime: downloads are the same for all groups.
fn check_container_runtime(group: &InstanceGroup, findings: &mut Findings) {
    let own = group.spec.containerd.as_ref().is_some_and(|containerd| {
        containerd.version.is_some() || containerd.packages.is_some() || containerd.runc.is_some()
    });
    if own {
        findings.add_group_error(
            group,
            "spec.containerd",
            "kctl does not support a container runtime of a group's own",
            "set version, packages and runc in the cluster's spec.containerd",
        );
    }
}

/// Merges the group's kubelet settings over the cluster's.
fn merge_kubelet(
    group: &mut InstanceGroup,
    role: InstanceGroupRole,
    spec: &ClusterSpec,
    context: &Context,
    findings: &mut Findings,
) {
    let cluster_kubelet = match role {
        InstanceGroupRole::Bastion => return,
        InstanceGroupRole::ControlPlane => &spec.master_kubelet,
        InstanceGroupRole::Node | InstanceGroupRole::ApiServer => &spec.kubelet,
    };
    let cluster_kubelet = cluster_kubelet.clone().unwrap_or_default();
    let group_kubelet = group.spec.kubelet.clone().unwrap_or_default();
    match overlay_fields(&cluster_kubelet, &group_kubelet) {
        Ok(mut merged) => {
            drop_idle_flags(&mut merged, context.version.minor);
            check_soft_evictions(group, &merged, findings);
            check_reservations(group, &merged, findings);
            group.spec.kubelet = Some(merged);
        }
        Err(error) => {
            findings.add_group_error(group, "spec.kubelet", error.to_string(), "correct it");
        }
    }
}

/// kubelet does not start with a soft threshold that has no grace period. Cluster and group may each have a part.
fn check_soft_evictions(
    group: &InstanceGroup,
    merged: &KubeletConfigSpec,
    findings: &mut Findings,
) {
    let soft = merged.eviction_soft.as_deref().unwrap_or_default();
    let periods = merged.eviction_soft_grace_period.as_deref();
    if let Some(signal) = signal_without_grace(soft, periods.unwrap_or_default()) {
        findings.add_group_error(
            group,
            "spec.kubelet.evictionSoft",
            format!("kubelet does not start without a grace period for {signal}"),
            &format!("add {signal}=1m30s or the like to evictionSoftGracePeriod"),
        );
    }
}
