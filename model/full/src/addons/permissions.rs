//! AWS permissions of addons, each stated once, by its addon, and given to the machines that it runs on while it is on.

use crate::FullSpec;
use crate::iam::{REQUEST_CLUSTER, RESOURCE_CLUSTER, Statement};
use serde_json::json;

/// The permissions of every addon that is on. All of them run on control planes.
pub(crate) fn addon_permissions(full: &FullSpec) -> Vec<Statement> {
    [
        super::cloud_controller::permissions(full),
        super::ebs_csi_driver::permissions(full),
        super::cert_manager::permissions(full),
        super::cluster_autoscaler::permissions(full),
        super::load_balancer_controller::permissions(full),
        super::external_dns::permissions(full),
    ]
    .concat()
}

/// Actions on objects with the cluster's tag; the caller adds the resources.
pub(super) fn change_own<const N: usize>(full: &FullSpec, actions: [&str; N]) -> Statement {
    Statement::allow(actions).when("StringEquals", RESOURCE_CLUSTER, full.name.as_str())
}

/// Actions that create objects with the cluster's tag; the caller adds the resources.
pub(super) fn create_own<const N: usize>(full: &FullSpec, actions: [&str; N]) -> Statement {
    Statement::allow(actions).when("StringEquals", REQUEST_CLUSTER, full.name.as_str())
}

/// Tagging EC2 objects of these kinds: with the cluster's tag when one of these actions creates them, later with any other tag.
pub(super) fn tag_own(full: &FullSpec, kinds: &[&str], creates: &[&str]) -> [Statement; 2] {
    let partition = &full.placement.partition;
    let arns = kinds.iter();
    let arns = arns.map(|kind| format!("arn:{partition}:ec2:*:*:{kind}/*"));
    let arns: Vec<String> = arns.collect();
    [
        create_own(full, ["ec2:CreateTags"]).on_each(&arns).when(
            "StringEquals",
            "ec2:CreateAction",
            json!(creates),
        ),
        change_own(full, ["ec2:CreateTags", "ec2:DeleteTags"])
            .on_each(&arns)
            .when("Null", REQUEST_CLUSTER, "true"),
    ]
}
