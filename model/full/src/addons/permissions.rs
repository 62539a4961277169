//! AWS permissions of addons, each stated once, by its addon. While it is on they go to the role of its service account, or, if service
//! accounts have none, to the instances that it runs on.

use crate::FullSpec;
use crate::iam::{REQUEST_CLUSTER, RESOURCE_CLUSTER, Statement};
use node::config::Role;
use serde_json::json;

/// The namespace of the service accounts of addons.
pub(crate) const NAMESPACE: &str = "kube-system";

/// Addons of which a pod runs on every node, by service account. The others are on control planes.
const ON_EVERY_NODE: [&str; 3] = ["aws-node", "kindnet", "kube-router"];

/// Service account and permissions of every addon that calls AWS.
fn addon_permissions(full: &FullSpec) -> Vec<(&'static str, Vec<Statement>)> {
    let mut all = vec![
        (
            "aws-cloud-controller-manager",
            super::cloud_controller::permissions(full),
        ),
        (
            "ebs-csi-controller-sa",
            super::ebs_csi_driver::permissions(full),
        ),
        ("cert-manager", super::cert_manager::permissions(full)),
        (
            "cluster-autoscaler",
            super::cluster_autoscaler::permissions(full),
        ),
        (
            "aws-load-balancer-controller",
            super::load_balancer_controller::permissions(full),
        ),
        ("external-dns", super::external_dns::permissions(full)),
        ("aws-node", super::amazon_vpc::permissions(full)),
        ("cilium-operator", super::cilium::permissions(full)),
        ("kindnet", super::kindnet::permissions(full)),
        ("kube-router", super::kube_router::permissions(full)),
    ];
    all.retain(|(_, statements)| !statements.is_empty());
    all
}

/// The permissions of addons that have no role of their own, on instances of this role.
pub(crate) fn permissions_of_instances(full: &FullSpec, role: Role) -> Vec<Statement> {
    if full.addons_have_roles() {
        return Vec::new();
    }
    let runs = |account: &str| match role {
        Role::ControlPlane => true,
        Role::Node => ON_EVERY_NODE.contains(&account),
        Role::Bastion => false,
    };
    let all = addon_permissions(full).into_iter();
    all.filter(|(account, _)| runs(account))
        .flat_map(|(_, statements)| statements)
        .collect()
}

/// Service account, in [`NAMESPACE`], and permissions of every addon with a role of its own.
pub(crate) fn addon_roles(full: &FullSpec) -> Vec<(&'static str, Vec<Statement>)> {
    if full.addons_have_roles() {
        addon_permissions(full)
    } else {
        Vec::new()
    }
}

/// Actions on objects with the cluster's tag; the caller adds the resources.
pub(super) fn change_own<const N: usize>(full: &FullSpec, actions: [&str; N]) -> Statement {
    Statement::allow(actions).when("StringEquals", RESOURCE_CLUSTER, full.name.as_str())
}

/// Turning off EC2's check of source and destination, which drops packets of pods. Of instances only: without a permission for their
/// security groups, which have the cluster's tag too, nobody gives an instance another group.
pub(super) fn turn_check_off(full: &FullSpec) -> Statement {
    let partition = &full.placement.partition;
    change_own(full, ["ec2:ModifyInstanceAttribute"])
        .on_each([format!("arn:{partition}:ec2:*:*:instance/*")])
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
