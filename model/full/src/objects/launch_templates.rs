//! A launch template for each instance group.

use crate::{FullSpec, Group, SshKey, Volume};
use cloud::{
    BlockDevice, Cloud, Ebs, IamInstanceProfile, KeyPair, LaunchTemplate, MarketOptions,
    MetadataOptions, NetworkInterface, SecurityGroup, canonical_price,
};
use engine::{Ref, Text};
use node::config::Role;
use node::names;
use std::collections::BTreeMap;

pub(super) fn build_launch_templates(
    full: &FullSpec,
    user_data: &BTreeMap<String, Text>,
) -> Vec<Cloud> {
    full.groups
        .iter()
        .map(|group| launch_template(full, group, user_data.get(&group.name)).into())
        .collect()
}

fn launch_template(full: &FullSpec, group: &Group, user_data: Option<&Text>) -> LaunchTemplate {
    let ipv6 = super::has_ipv6(full, group);
    LaunchTemplate {
        launch_template_name: names::autoscaling_group(&full.name, &group.name, group.role),
        block_device_mappings: block_devices(group),
        credit_specification: group.cpu_credits.clone(),
        iam_instance_profile: instance_profile_ref(full, group),
        image_id: group.image_id.clone(),
        instance_type: group.machine_type.clone(),
        instance_market_options: market_options(group),
        key_name: full.ssh_key.as_ref().map(key_pair_ref),
        metadata_options: MetadataOptions {
            http_endpoint: "enabled".into(),
            http_protocol_ipv6: if ipv6 { "enabled" } else { "disabled" }.into(),
            http_put_response_hop_limit: group.http_put_response_hop_limit,
            http_tokens: group.http_tokens.clone(),
        },
        monitoring: group.detailed_monitoring,
        ebs_optimized: group.ebs_optimized,
        network_interface: NetworkInterface {
            associate_public_ip_address: group.associate_public_ip,
            delete_on_termination: true,
            ipv6_address_count: i32::from(ipv6),
            groups: security_group_refs(full, group),
        },
        tenancy: group.tenancy.clone(),
        tags: super::group_tags::instance_group_tags(full, group),
        user_data: user_data.cloned(),
    }
}

/// Spot instances, unless a policy says how many are: AWS takes only one of the two
/// (<https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-mixed-instances-groups.html>).
fn market_options(group: &Group) -> Option<MarketOptions> {
    let price = group.max_price.as_deref()?;
    group.mixed_instances.is_none().then(|| MarketOptions {
        max_price: canonical_price(price),
        instance_interruption_behavior: group.instance_interruption_behavior.clone(),
    })
}

fn key_pair_ref(key: &SshKey) -> Ref {
    match key {
        SshKey::Existing(name) => Ref::Given(name.clone()),
        SshKey::Ours { name, .. } => super::own_ref::<KeyPair>(name),
    }
}

fn instance_profile_ref(full: &FullSpec, group: &Group) -> Ref {
    match &group.iam_profile {
        Some(name) => Ref::Given(name.clone()),
        None => super::own_ref::<IamInstanceProfile>(names::iam_name(&full.name, group.role)),
    }
}

/// The security group of a group's instances that kctl gives rules to: the role's or its override.
pub(super) fn base_security_group(full: &FullSpec, group: &Group) -> Ref {
    match &group.security_group_override {
        Some(id) => Ref::Given(id.clone()),
        None => super::own_ref::<SecurityGroup>(names::security_group(&full.name, group.role)),
    }
}

/// The security group of the role or its override, additional ones, and on control planes also the additional ones of
/// the API's load balancer, so that the same clients reach both.
pub(super) fn security_group_refs(full: &FullSpec, group: &Group) -> Vec<Ref> {
    let base = base_security_group(full, group);
    let balancer = full
        .api
        .load_balancer
        .iter()
        .filter(|_| group.role == Role::ControlPlane)
        .flat_map(|balancer| &balancer.additional_security_groups);
    let more = group.additional_security_groups.iter().chain(balancer);
    super::sort_unique(std::iter::once(base).chain(more.cloned().map(Ref::Given)))
}

fn block_devices(group: &Group) -> Vec<BlockDevice> {
    let root = ebs_device(&group.root_device, &group.root_volume);
    // Instance store disks start at c, as in Amazon's images.
    let letters = ('c'..='z').zip(0..group.instance_store_disks);
    let stores = letters.map(|(letter, number)| BlockDevice {
        device_name: format!("/dev/sd{letter}"),
        ebs: None,
        virtual_name: Some(format!("ephemeral{number}")),
    });
    let more = group
        .volumes
        .iter()
        .map(|volume| ebs_device(&volume.device, volume));
    std::iter::once(root).chain(stores).chain(more).collect()
}

fn ebs_device(device: &str, volume: &Volume) -> BlockDevice {
    BlockDevice {
        device_name: device.to_owned(),
        ebs: Some(Ebs {
            delete_on_termination: volume.delete_on_termination,
            encrypted: volume.encrypted,
            iops: volume.iops,
            kms_key_id: volume.kms_key_id.clone(),
            throughput: volume.throughput,
            volume_size: volume.size,
            volume_type: volume.volume_type.clone(),
        }),
        virtual_name: None,
    }
}
