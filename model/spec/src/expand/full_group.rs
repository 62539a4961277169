//! The instance groups of the full spec.

use super::groups::{group_zones, in_public_subnets};
use super::instances::{first_machine_type, resolve_instance};
use super::mixed_instances::mixed_instances;
use super::{Context, Findings, labels, nitro, node_settings, volumes};
use crate::api::cluster::ClusterSpec;
use crate::api::instance::VolumeSpec;
use crate::api::instance_group::InstanceGroupSpec;
use crate::api::{InstanceGroup, InstanceGroupRole};
use crate::warm_pool;
use cloud::facts::Facts;
use full::{ExternalLoadBalancer, Group, Volume};
use node::config::Role;
use node::duration;

/// Derives the full spec of a completed group; `None` only if a problem was reported.
pub(super) fn full_group(
    group: &InstanceGroup,
    spec: &ClusterSpec,
    context: &Context,
    findings: &mut Findings,
) -> Option<Group> {
    let zones = group_zones(group, spec);
    let instance = resolve_instance(group, &zones, context, findings)?;
    let mixed_instances = mixed_instances(group, instance.arch, &zones, context, findings);
    nitro::check_types(group, spec, context, findings);
    let lifetime = max_lifetime(group, findings);
    let volumes = full_additional_volumes(group, findings);
    let taints = labels::node_taints(group);
    let group_spec = &group.spec;
    let metadata = group_spec.instance_metadata.clone().unwrap_or_default();
    Some(Group {
        name: group.name().to_owned(),
        role: match group_spec.role? {
            InstanceGroupRole::ControlPlane => Role::ControlPlane,
            InstanceGroupRole::Node => Role::Node,
            InstanceGroupRole::Bastion => Role::Bastion,
            InstanceGroupRole::ApiServer => return None,
        },
        image_id: instance.image_id,
        root_volume: full_root_volume(group_spec, &instance.root_device)?,
        root_device: instance.root_device,
        arch: instance.arch,
        machine_type: first_machine_type(group_spec)?.to_owned(),
        instance_store_disks: instance.instance_store_disks,
        min_size: group_spec.min_size?,
        max_size: group_spec.max_size?,
        subnets: group_spec.subnets.clone(),
        // A public address has no use in a private subnet.
        associate_public_ip: group_spec.associate_public_ip? && in_public_subnets(group_spec, spec),
        volumes: volumes?,
        cloud_labels: group_spec.cloud_labels.clone(),
        node_labels: group_spec.node_labels.clone(),
        additional_security_groups: group_spec.additional_security_groups.clone(),
        security_group_override: group_spec.security_group_override.clone(),
        iam_profile: user_profile_name(group_spec),
        iam_role: user_profile_role(group, context.facts, findings),
        detailed_monitoring: group_spec.detailed_instance_monitoring == Some(true),
        ebs_optimized: group_spec.root_volume_optimization,
        http_tokens: metadata.http_tokens?,
        http_put_response_hop_limit: metadata.http_put_response_hop_limit?,
        max_price: group_spec.max_price.clone(),
        mixed_instances,
        instance_interruption_behavior: group_spec.instance_interruption_behavior.clone(),
        tenancy: group_spec.tenancy.clone(),
        cpu_credits: group_spec.cpu_credits.clone(),
        capacity_rebalance: group_spec.capacity_rebalance == Some(true),
        instance_protection: group_spec.instance_protection == Some(true),
        suspend_processes: group_spec.suspend_processes.clone(),
        warm_pool: warm_pool::warm_pool_of(group_spec, spec).map(warm_pool::full_warm_pool),
        max_instance_lifetime: lifetime?,
        external_load_balancers: external_load_balancers(group_spec),
        additional_user_data: group_spec
            .additional_user_data
            .iter()
            .map(|part| (part.name.clone(), part.type_.clone(), part.content.clone()))
            .collect(),
        compress_user_data: group_spec.compress_user_data == Some(true),
        node: node_settings::full_node_settings(group, &taints, spec, context, findings),
        taints,
    })
}

fn full_root_volume(group_spec: &InstanceGroupSpec, device: &str) -> Option<Volume> {
    let volume_type = group_spec.root_volume_type.clone()?;
    Some(Volume {
        device: device.to_owned(),
        size: group_spec.root_volume_size?,
        iops: volumes::accepted_iops(&volume_type, group_spec.root_volume_iops),
        throughput: volumes::accepted_throughput(&volume_type, group_spec.root_volume_throughput),
        volume_type,
        encrypted: group_spec.root_volume_encryption,
        kms_key_id: group_spec.root_volume_encryption_key.clone(),
        // kOps does not read the field: each replaced instance would leave a volume behind.
        delete_on_termination: true,
    })
}

fn full_additional_volumes(group: &InstanceGroup, findings: &mut Findings) -> Option<Vec<Volume>> {
    let volumes = group.spec.volumes.iter().enumerate();
    let mut full = Vec::new();
    for (index, volume) in volumes {
        match full_volume(volume) {
            Some(volume) => full.push(volume),
            None => findings.add_group_error(
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
        iops: volumes::accepted_iops(&volume_type, volume.iops),
        throughput: volumes::accepted_throughput(&volume_type, volume.throughput),
        volume_type,
        encrypted: volume.encrypted,
        kms_key_id: volume.key.clone(),
        delete_on_termination: volume.delete_on_termination?,
    })
}

/// Maximum lifetime of an instance in seconds; 0: no limit.
fn max_lifetime(group: &InstanceGroup, findings: &mut Findings) -> Option<i32> {
    let Some(text) = &group.spec.max_instance_lifetime else {
        return Some(0);
    };
    let seconds = duration::parse_whole_seconds(text);
    if seconds.is_none() {
        findings.add_group_error(
            group,
            "spec.maxInstanceLifetime",
            format!("{text:?} is not a duration"),
            "write it as 720h",
        );
    }
    seconds
}

/// The IAM role in the user's instance profile. Instances sign requests with the role, whose name can differ from the profile's.
fn user_profile_role(
    group: &InstanceGroup,
    facts: &Facts,
    findings: &mut Findings,
) -> Option<String> {
    let profile = user_profile_name(&group.spec)?;
    let role = facts.profile_roles.get(&profile);
    if role.is_none() && !facts.stand_in {
        findings.add_group_error(
            group,
            "spec.iam.profile",
            format!("this account has no instance profile {profile} with a role in it"),
            "create it, add a role to it, or remove spec.iam to have kctl create both",
        );
    }
    role.cloned()
}

/// The name of the user's instance profile: the last part of its ARN.
pub(super) fn user_profile_name(group_spec: &InstanceGroupSpec) -> Option<String> {
    let arn = group_spec.iam.as_ref()?.profile.as_deref()?;
    arn.rsplit('/').next().map(str::to_owned)
}

fn external_load_balancers(group_spec: &InstanceGroupSpec) -> Vec<ExternalLoadBalancer> {
    group_spec
        .external_load_balancers
        .iter()
        .filter_map(|balancer| {
            let classic = balancer.load_balancer_name.clone();
            let classic = classic.map(ExternalLoadBalancer::Classic);
            let group = balancer.target_group_arn.clone();
            classic.or_else(|| group.map(ExternalLoadBalancer::TargetGroup))
        })
        .collect()
}
