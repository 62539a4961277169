//! The groups: that there are enough, where they are and how large.

use std::collections::BTreeSet;

use crate::api::{InstanceGroup, InstanceGroupRole, IntOrString, SubnetType};
use crate::read::{Problem, nearest};

use super::ClusterInput;
use super::text::{check_unique, is_id};

/// What only the whole set of groups shows.
pub fn check_set(input: &ClusterInput<'_>, problems: &mut Vec<Problem>) {
    let groups = input.instance_groups;
    if groups.iter().any(|group| group.spec.role.is_none()) {
        return; // That group is reported, and may be the one that seems to be missing.
    }
    let has = |role| groups.iter().any(|group| group.spec.role == Some(role));
    if !has(InstanceGroupRole::ControlPlane) {
        let problem = Problem::error(
            "",
            "the cluster has no group of role ControlPlane: nothing would run its control plane",
        );
        problems.push(problem.hint(
            "add an InstanceGroup with \"role: ControlPlane\" for each zone of the control plane",
        ));
    }
    if !has(InstanceGroupRole::Node) {
        let problem = Problem::warning(
            "",
            "the cluster has no group of role Node: pods have nowhere to run",
        );
        problems.push(problem.hint("add an InstanceGroup with \"role: Node\""));
    }
}

pub fn check(group: &InstanceGroup, input: &ClusterInput<'_>, problems: &mut Vec<Problem>) {
    check_role(group, problems);
    check_manager(group, problems);
    check_sizes(group, problems);
    check_subnets(group, input, problems);
    check_image(group, problems);
    if group.spec.role == Some(InstanceGroupRole::ControlPlane) {
        check_control_plane(group, input, problems);
    }
}

fn check_role(group: &InstanceGroup, problems: &mut Vec<Problem>) {
    if group.spec.role.is_none() {
        let problem = Problem::error("spec.role", "the group has no role");
        problems.push(problem.hint("add \"role: Node\", ControlPlane or Bastion"));
    }
}

/// Also where what kctl does not do is allowed: an Auto Scaling group in its place would launch instances that nobody asked for.
fn check_manager(group: &InstanceGroup, problems: &mut Vec<Problem>) {
    let manager = group.spec.manager.as_deref();
    if let Some(other) = manager.filter(|manager| *manager != "CloudGroup") {
        let message = format!("kctl does not support groups of {other}");
        let hint = "use CloudGroup, an Auto Scaling group with its minSize and maxSize, or leave the group out";
        problems.push(Problem::error("spec.manager", message).hint(hint));
    }
}

fn check_sizes(group: &InstanceGroup, problems: &mut Vec<Problem>) {
    let (min, max) = (group.spec.min_size, group.spec.max_size);
    for (path, size) in [("spec.minSize", min), ("spec.maxSize", max)] {
        if let Some(size) = size.filter(|size| *size < 0) {
            problems.push(
                Problem::error(path, format!("a group cannot have {size} instances"))
                    .hint("use 0 or more"),
            );
        }
    }
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        let problem = Problem::error(
            "spec.minSize",
            format!("minSize {min} is above maxSize {max}"),
        );
        problems.push(problem.hint(format!("lower minSize to {max}, or raise maxSize to {min}")));
    }
}

fn check_subnets(group: &InstanceGroup, input: &ClusterInput<'_>, problems: &mut Vec<Problem>) {
    let spec = &group.spec;
    let known = &input.cluster.spec.subnets;
    if spec.subnets.is_empty() && spec.zones.is_empty() {
        let problem = Problem::error("spec.subnets", "the group is in no subnet");
        return problems.push(problem.hint("list names of subnets of the cluster"));
    }
    let mut kinds: Vec<(SubnetType, &str)> = Vec::new();
    for (index, name) in spec.subnets.iter().enumerate() {
        if let Some(subnet) = known.iter().find(|subnet| subnet.name == *name) {
            kinds.push((subnet.subnet_type(), name));
            continue;
        }
        let names: Vec<&str> = known.iter().map(|subnet| subnet.name.as_str()).collect();
        let problem = Problem::error(
            format!("spec.subnets[{index}]"),
            format!("\"{name}\" is not a subnet of the cluster"),
        );
        problems.push(problem.hint(nearest::hint(name, &names)));
    }
    check_unique(
        spec.subnets
            .iter()
            .enumerate()
            .map(|(index, name)| (format!("spec.subnets[{index}]"), name.as_str())),
        problems,
    );
    // Public or not decides on public addresses, for the whole group.
    let is_public = |kind: SubnetType| matches!(kind, SubnetType::Public | SubnetType::Utility);
    if let Some((first, first_name)) = kinds.first()
        && let Some((kind, name)) = kinds
            .iter()
            .find(|(kind, _)| is_public(*kind) != is_public(*first))
    {
        let message =
            format!("the group mixes subnets: {first_name} is {first:?}, {name} is {kind:?}");
        problems.push(
            Problem::error("spec.subnets", message).hint("make one group for each kind of subnet"),
        );
    }
}

fn check_image(group: &InstanceGroup, problems: &mut Vec<Problem>) {
    if group
        .spec
        .machine_type
        .as_deref()
        .is_some_and(|kind| kind.trim().is_empty())
    {
        let problem = Problem::error("spec.machineType", "the instance type is empty");
        problems.push(
            problem.hint("write a type such as t3.medium, or remove the line to get the default"),
        );
    }
    let Some(image) = &group.spec.image else {
        return;
    };
    let known = if image.starts_with("ami-") {
        is_id("ami", image)
    } else {
        image.strip_prefix("ssm:").map_or_else(
            || {
                image
                    .split_once('/')
                    .is_some_and(|(owner, name)| !owner.is_empty() && !name.is_empty())
            },
            |parameter| parameter.starts_with('/'),
        )
    };
    if !known {
        let problem = Problem::error("spec.image", format!("\"{image}\" names no image"));
        problems.push(problem.hint("write ami-..., OWNER/NAME or ssm:/PARAMETER"));
    }
}

/// As kOps (`MasterVolumeBuilder`: "must specify a unique zone for instancegroup"): a volume of EBS is attached to instances of its own
/// zone only, and an Auto Scaling group launches in whichever of its zones it likes.
fn check_one_zone(group: &InstanceGroup, input: &ClusterInput<'_>, problems: &mut Vec<Problem>) {
    let spec = &group.spec;
    let subnets = input.cluster.spec.subnets.iter();
    let subnets = subnets.filter(|subnet| spec.subnets.contains(&subnet.name));
    let subnets: BTreeSet<&str> = subnets.map(|subnet| subnet.zone.as_str()).collect();
    let named = spec.zones.iter().map(String::as_str);
    let zones: BTreeSet<&str> = named.chain(subnets.iter().copied()).collect();
    if zones.len() > 1 {
        let zones: Vec<&str> = zones.into_iter().collect();
        let message = format!(
            "the group is in {}, and the volumes of its etcd members stay in one zone: in another its instances would wait for them for ever",
            zones.join(" and ")
        );
        let at = if subnets.len() > 1 {
            "spec.subnets"
        } else {
            "spec.zones"
        };
        let hint = "make one group of role ControlPlane for each zone, and let each etcd member name the group of its zone";
        problems.push(Problem::error(at, message).hint(hint));
    }
}

fn check_control_plane(
    group: &InstanceGroup,
    input: &ClusterInput<'_>,
    problems: &mut Vec<Problem>,
) {
    let clusters = input.cluster.spec.etcd_clusters.iter();
    let members = clusters
        .filter(|cluster| super::etcd::NAMES.contains(&cluster.name.as_str()))
        .map(|cluster| {
            let own = cluster
                .etcd_members
                .iter()
                .filter(|member| member.instance_group == group.name());
            (own.count(), cluster.name.as_str())
        });
    let members: Vec<(usize, &str)> = members.collect();
    let without: Vec<&str> = members
        .iter()
        .filter(|(count, _)| *count == 0)
        .map(|(_, name)| *name)
        .collect();
    if members.iter().any(|(count, _)| *count > 0) {
        check_one_zone(group, input, problems);
    }
    let fewest = members.iter().min();
    if !without.is_empty() {
        let clusters = if without.len() == 1 {
            "cluster"
        } else {
            "clusters"
        };
        let names = without.join(" and ");
        let message = format!(
            "no member of etcd {clusters} {names} names this group: its instances could not start their control plane"
        );
        let hint = format!(
            "add a member with \"instanceGroup: {}\" to spec.etcdClusters, or remove the group",
            group.name()
        );
        problems.push(Problem::error("metadata.name", message).hint(hint));
    } else if let (Some(max), Some((count, name))) = (group.spec.max_size, fewest)
        && usize::try_from(max).is_ok_and(|max| max > *count)
    {
        let message = format!(
            "up to {max} instances, but members of etcd cluster {name} for only {count}: an instance without a member cannot start its control plane"
        );
        problems.push(Problem::error("spec.maxSize", message).hint(format!(
            "set maxSize to {count}, or add members to spec.etcdClusters"
        )));
    }
    let surge = group
        .spec
        .rolling_update
        .as_ref()
        .and_then(|update| update.max_surge.as_ref());
    let none = |surge: &IntOrString| matches!(surge.to_string().as_str(), "0" | "0%");
    if surge.is_some_and(|surge| !none(surge)) {
        let problem = Problem::error(
            "spec.rollingUpdate.maxSurge",
            "an instance beyond the members of etcd has no volume",
        );
        problems.push(problem.hint("use 0 for groups of role ControlPlane"));
    }
}
