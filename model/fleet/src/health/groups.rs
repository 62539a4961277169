//! The numbers of an instance group, and why it has fewer instances than it wants.

use super::{Finding, FindingKind, GroupHealth};
use crate::{Fleet, Group, Membership, role_name};
use node::config::Role;

/// The numbers of an instance group.
pub(super) fn group_health(group: &Group, fleet: &Fleet) -> GroupHealth {
    let scaling = fleet.scaling_group(&group.name);
    let instances = fleet.counted_instances(&group.name);
    let ready = instances
        .iter()
        .filter(|one| one.membership == Membership::Ready)
        .count();
    let has_nodes = group.role != Some(Role::Bastion);
    GroupHealth {
        name: group.name.clone(),
        role: role_name(group.role),
        min: scaling.map(|one| one.min).or(group.min),
        desired: scaling.map(|one| one.desired),
        max: scaling.map(|one| one.max).or(group.max),
        instances: instances.len(),
        ready: (fleet.nodes.is_ok() && has_nodes).then_some(ready),
    }
}

/// The problem of an instance group that is not in AWS, or has fewer instances than it wants; in the latter case with
/// AWS' reason for the last failed launch.
pub(super) fn group_finding(name: &str, fleet: &Fleet) -> Option<Finding> {
    let finding = |message, next: &str| {
        Some(Finding {
            kind: FindingKind::InstanceGroup,
            name: name.to_owned(),
            message,
            next: Some(next.to_owned()),
        })
    };
    let Some(scaling) = fleet.scaling_group(name) else {
        return finding(
            "it is not in AWS yet".to_owned(),
            "create it: kctl update --yes",
        );
    };
    let has = fleet.counted_instances(name).len();
    if has >= scaling.desired_count() {
        return None;
    }
    let lacks = format!("it has {has} of {} instances", scaling.desired);
    if let Some(failure) = fleet.launch_failures.get(&scaling.name) {
        return finding(
            format!("{lacks}: {}", failure.message),
            launch_next_step(&failure.message),
        );
    }
    if scaling.suspended.iter().any(|process| process == "Launch") {
        return finding(
            format!("{lacks}: its Launch process is suspended"),
            "resume it: aws autoscaling resume-processes",
        );
    }
    finding(lacks, "AWS is launching them: wait")
}

/// What to do about a failed launch. With an account's first group AWS creates the service-linked role of Auto Scaling,
/// which cannot be assumed for some seconds: "Access denied when attempting to assume role
/// ...AWSServiceRoleForAutoScaling" (pelias/kubernetes#32).
fn launch_next_step(message: &str) -> &'static str {
    if message.contains("assume role") && message.contains("AWSServiceRoleForAutoScaling") {
        "wait a few minutes: AWS creates this role with the account's first group, and Auto Scaling retries by itself"
    } else {
        "choose another instance type or zone, or correct what AWS names; Auto Scaling retries by itself"
    }
}
