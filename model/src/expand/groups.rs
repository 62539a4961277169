//! Instance groups: where they are, how many, which machines, what they are called.

use super::fill::{fill, overlay};
use super::labels;
use super::machines::{arch_of_image, arch_of_type, machine};
use super::volumes::{self, DEFAULT_TYPE};
use super::{Found, Known, duration};
use crate::api::cluster::ClusterSpec;
use crate::api::instance_group::InstanceGroupSpec;
use crate::api::machine::VolumeSpec;
use crate::api::subnet::ClusterSubnetSpec;
use crate::api::{InstanceGroup, InstanceGroupRole, SubnetType};
use crate::catalog::default_image;
use crate::create::default_machine_type;
use crate::full::{ExternalLoadBalancer, Group, Role, Volume};

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

fn zones<'a>(group: &InstanceGroup, spec: &'a ClusterSpec) -> Vec<&'a str> {
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
        group.spec.node_labels = labels::labels(group, role);
        if role != InstanceGroupRole::Bastion {
            group.spec.taints = labels::taints(group, role);
        }
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

fn in_public_subnets(group: &InstanceGroupSpec, spec: &ClusterSpec) -> bool {
    let mut subnets = group.subnets.iter().filter_map(|name| subnet(spec, name));
    subnets.all(|subnet| matches!(subnet.type_, Some(SubnetType::Public | SubnetType::Utility)))
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

/// A completed group; `None` only where a problem was found.
pub(super) fn full(
    group: &InstanceGroup,
    spec: &ClusterSpec,
    known: &Known,
    found: &mut Found,
) -> Option<Group> {
    let machine = machine(group, &zones(group, spec), known, found)?;
    let lifetime = max_lifetime(group, found);
    let volumes = more_full_volumes(group, found);
    let said = &group.spec;
    let metadata = said.instance_metadata.clone().unwrap_or_default();
    Some(Group {
        name: group.name().to_owned(),
        role: match said.role? {
            InstanceGroupRole::ControlPlane => Role::ControlPlane,
            InstanceGroupRole::Node => Role::Node,
            InstanceGroupRole::Bastion => Role::Bastion,
            InstanceGroupRole::ApiServer => return None,
        },
        image_id: machine.image_id,
        root_volume: full_root_volume(said, &machine.root_device)?,
        root_device: machine.root_device,
        arch: machine.arch,
        machine_type: said.machine_type.clone()?,
        instance_store_disks: machine.instance_store_disks,
        min_size: said.min_size?,
        max_size: said.max_size?,
        subnets: said.subnets.clone(),
        // In a private subnet a public address would be of no use.
        associate_public_ip: said.associate_public_ip? && in_public_subnets(said, spec),
        volumes: volumes?,
        cloud_labels: said.cloud_labels.clone(),
        node_labels: said.node_labels.clone(),
        taints: said.taints.clone(),
        additional_security_groups: said.additional_security_groups.clone(),
        security_group_override: said.security_group_override.clone(),
        iam_profile: iam_profile(said),
        detailed_monitoring: said.detailed_instance_monitoring == Some(true),
        http_tokens: metadata.http_tokens?,
        http_put_response_hop_limit: metadata.http_put_response_hop_limit?,
        max_price: said.max_price.clone(),
        instance_interruption_behavior: said.instance_interruption_behavior.clone(),
        tenancy: said.tenancy.clone(),
        cpu_credits: said.cpu_credits.clone(),
        capacity_rebalance: said.capacity_rebalance == Some(true),
        instance_protection: said.instance_protection == Some(true),
        suspend_processes: said.suspend_processes.clone(),
        max_instance_lifetime: lifetime?,
        external_load_balancers: external_load_balancers(said),
        additional_user_data: said
            .additional_user_data
            .iter()
            .map(|part| (part.name.clone(), part.type_.clone(), part.content.clone()))
            .collect(),
    })
}

fn full_root_volume(said: &InstanceGroupSpec, device: &str) -> Option<Volume> {
    let volume_type = said.root_volume_type.clone()?;
    Some(Volume {
        device: device.to_owned(),
        size: said.root_volume_size?,
        iops: volumes::iops(&volume_type, said.root_volume_iops),
        throughput: volumes::throughput(&volume_type, said.root_volume_throughput),
        volume_type,
        encrypted: said.root_volume_encryption,
        kms_key_id: said.root_volume_encryption_key.clone(),
        delete_on_termination: said.root_volume_delete_on_termination?,
    })
}

fn more_full_volumes(group: &InstanceGroup, found: &mut Found) -> Option<Vec<Volume>> {
    let volumes = group.spec.volumes.iter().enumerate();
    let mut full = Vec::new();
    for (index, volume) in volumes {
        match full_volume(volume) {
            Some(volume) => full.push(volume),
            None => found.group_error(
                group,
                format!("spec.volumes[{index}].size"),
                "a volume needs a size",
                "set it, in GiB",
            ),
        }
    }
    (full.len() == group.spec.volumes.len()).then_some(full)
}

fn full_volume(volume: &VolumeSpec) -> Option<Volume> {
    let volume_type = volume.type_.clone()?;
    Some(Volume {
        device: volume.device.clone(),
        size: volume.size?,
        iops: volumes::iops(&volume_type, volume.iops),
        throughput: volumes::throughput(&volume_type, volume.throughput),
        volume_type,
        encrypted: volume.encrypted,
        kms_key_id: volume.key.clone(),
        delete_on_termination: volume.delete_on_termination?,
    })
}

/// Seconds a machine lives at most; 0: no limit.
fn max_lifetime(group: &InstanceGroup, found: &mut Found) -> Option<i32> {
    let Some(text) = &group.spec.max_instance_lifetime else {
        return Some(0);
    };
    let seconds = duration::seconds(text);
    if seconds.is_none() {
        found.group_error(
            group,
            "spec.maxInstanceLifetime",
            format!("{text:?} is not a duration"),
            "write it as 720h",
        );
    }
    seconds
}

/// The name of the user's instance profile: the last part of its ARN.
fn iam_profile(said: &InstanceGroupSpec) -> Option<String> {
    let arn = said.iam.as_ref()?.profile.as_deref()?;
    arn.rsplit('/').next().map(str::to_owned)
}

fn external_load_balancers(said: &InstanceGroupSpec) -> Vec<ExternalLoadBalancer> {
    said.external_load_balancers
        .iter()
        .filter_map(|balancer| {
            let classic = balancer.load_balancer_name.clone();
            let classic = classic.map(ExternalLoadBalancer::Classic);
            let group = balancer.target_group_arn.clone();
            classic.or_else(|| group.map(ExternalLoadBalancer::TargetGroup))
        })
        .collect()
}
