//! What control planes may do: attach etcd's volumes, read and write the state store, publish names, and all that the
//! cloud controller manager does. As kOps', also what the EBS CSI driver, the cluster autoscaler and the node termination
//! handler do, for operators who install them: kctl does not yet (docs/compat.md, `addon-permissions`).

use crate::iam::document::Statement;
use crate::iam::{endpoint_suffix, state};
use crate::{DnsKind, FullSpec, queue_arn};
use node::config::Networking;
use node::names;
use serde_json::json;
use std::collections::BTreeSet;

/// Looking, in AWS' own words never limited to resources. Some of EC2 are what Elastic Load Balancing demands of who makes a
/// balancer ("Elastic Load Balancing API permissions", Elastic Load Balancing User Guide).
const LOOK: &[&str] = &[
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeAutoScalingInstances",
    "autoscaling:DescribeLaunchConfigurations",
    "autoscaling:DescribeScalingActivities",
    "autoscaling:DescribeTags",
    "ec2:DescribeAccountAttributes",
    "ec2:DescribeAddresses",
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceTopology",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeInternetGateways",
    "ec2:DescribeLaunchTemplateVersions",
    "ec2:DescribeRegions",
    "ec2:DescribeRouteTables",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeTags",
    "ec2:DescribeVolumeStatus",
    "ec2:DescribeVolumes",
    "ec2:DescribeVolumesModifications",
    "ec2:DescribeVpcs",
    "ec2:GetInstanceTypesFromInstanceRequirements",
    "ec2:GetSecurityGroupsForVpc",
    "elasticloadbalancing:DescribeListeners",
    "elasticloadbalancing:DescribeLoadBalancerAttributes",
    "elasticloadbalancing:DescribeLoadBalancerPolicies",
    "elasticloadbalancing:DescribeLoadBalancers",
    "elasticloadbalancing:DescribeTargetGroupAttributes",
    "elasticloadbalancing:DescribeTargetGroups",
    "elasticloadbalancing:DescribeTargetHealth",
    "kms:DescribeKey",
];

/// Changing what carries the cluster's tag.
const CHANGE: &[&str] = &[
    "autoscaling:SetDesiredCapacity",
    "autoscaling:TerminateInstanceInAutoScalingGroup",
    "ec2:AttachVolume",
    "ec2:AuthorizeSecurityGroupIngress",
    "ec2:DeleteSecurityGroup",
    "ec2:DeleteVolume",
    "ec2:DetachVolume",
    "ec2:ModifyInstanceAttribute",
    "ec2:ModifyVolume",
    "ec2:RevokeSecurityGroupIngress",
    "elasticloadbalancing:AddTags",
    "elasticloadbalancing:ApplySecurityGroupsToLoadBalancer",
    "elasticloadbalancing:AttachLoadBalancerToSubnets",
    "elasticloadbalancing:ConfigureHealthCheck",
    "elasticloadbalancing:CreateLoadBalancerListeners",
    "elasticloadbalancing:CreateLoadBalancerPolicy",
    "elasticloadbalancing:DeleteListener",
    "elasticloadbalancing:DeleteLoadBalancer",
    "elasticloadbalancing:DeleteLoadBalancerListeners",
    "elasticloadbalancing:DeleteTargetGroup",
    "elasticloadbalancing:DeregisterInstancesFromLoadBalancer",
    "elasticloadbalancing:DeregisterTargets",
    "elasticloadbalancing:DetachLoadBalancerFromSubnets",
    "elasticloadbalancing:ModifyListener",
    "elasticloadbalancing:ModifyLoadBalancerAttributes",
    "elasticloadbalancing:ModifyTargetGroup",
    "elasticloadbalancing:ModifyTargetGroupAttributes",
    "elasticloadbalancing:RegisterInstancesWithLoadBalancer",
    "elasticloadbalancing:RegisterTargets",
    "elasticloadbalancing:SetLoadBalancerPoliciesForBackendServer",
    "elasticloadbalancing:SetLoadBalancerPoliciesOfListener",
];

/// Making what will carry the cluster's tag.
const CREATE: &[&str] = &[
    "ec2:CopyVolumes",
    "ec2:CreateSecurityGroup",
    "ec2:CreateVolume",
    "elasticloadbalancing:CreateListener",
    "elasticloadbalancing:CreateLoadBalancer",
    "elasticloadbalancing:CreateTargetGroup",
];

/// The service whose role the cloud controller manager may have AWS make.
const BALANCING: &str = "elasticloadbalancing.amazonaws.com";
const RECORDS: &str = "route53:ChangeResourceRecordSetsNormalizedRecordNames";
const RESOURCE_CLUSTER: &str = "aws:ResourceTag/KubernetesCluster";
const REQUEST_CLUSTER: &str = "aws:RequestTag/KubernetesCluster";

pub(super) fn statements(full: &FullSpec) -> Vec<Statement> {
    let cluster = full.name.as_str();
    let volumes = Statement::allow_one("ec2:AttachVolume")
        .on_each(["*"])
        .when("StringEquals", RESOURCE_CLUSTER, cluster)
        .when("StringEquals", "aws:ResourceTag/k8s.io/role/master", "1");
    let mut all = vec![volumes];
    all.extend(state::control_plane(full));
    all.extend(zone(full));
    all.extend(tagging(
        full,
        &["snapshot", "volume"],
        &["CopyVolumes", "CreateVolume"],
    ));
    all.extend(tagging(full, &["security-group"], &["CreateSecurityGroup"]));
    all.extend(keys(full));
    all.push(
        // The one that the cloud controller manager needs with an account's first load balancer.
        Statement::allow_one("iam:CreateServiceLinkedRole")
            .on_all()
            .when("StringEquals", "iam:AWSServiceName", BALANCING),
    );
    if handles_termination(full) {
        all.push(Statement::allow(["sqs:DeleteMessage", "sqs:ReceiveMessage"]).on(queue_arn(full)));
    }
    all.extend([
        Statement::allow(look(full)).on_all(),
        Statement::allow(change(full))
            .on_all()
            .when("StringEquals", RESOURCE_CLUSTER, cluster),
        Statement::allow(CREATE)
            .on_all()
            .when("StringEquals", REQUEST_CLUSTER, cluster),
        // The VPC in which a security group is made carries no tag of the request.
        Statement::allow_one("ec2:CreateSecurityGroup").on(arn(full, "ec2:*:*:vpc/*")),
    ]);
    all
}

fn arn(full: &FullSpec, rest: &str) -> String {
    format!("arn:{}:{rest}", full.placement.partition)
}

/// Publishing names in the cluster's zone: those that protokube keeps, and no others. The keys of the condition:
/// <https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/specifying-rrset-conditions.html>.
fn zone(full: &FullSpec) -> Vec<Statement> {
    let published = [
        full.dns.api_public_name.clone(),
        full.dns.api_internal_name.clone(),
        names::dns::bootstrap(&full.name),
    ];
    let published: BTreeSet<String> = published.iter().map(|name| normalized(name)).collect();
    let zone = match (&full.dns.zone, full.dns.kind) {
        (Some(zone), DnsKind::Public | DnsKind::Private) => zone,
        (None, _) | (_, DnsKind::None) => return Vec::new(),
    };
    let hosted_zone = arn(full, &format!("route53:::hostedzone/{}", zone.id));
    vec![
        Statement::allow(["route53:ChangeResourceRecordSets"])
            .on_each([&hosted_zone])
            .when("ForAllValues:StringEquals", RECORDS, json!(published)),
        Statement::allow(["route53:GetHostedZone", "route53:ListResourceRecordSets"])
            .on_each([&hosted_zone]),
        Statement::allow(["route53:GetChange"]).on_each([arn(full, "route53:::change/*")]),
    ]
}

/// As Route 53 compares names: in lower case, without the last dot. Names of clusters have no other characters than it
/// leaves as they are.
fn normalized(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// Tagging things of some kinds: with the cluster's tag in the creating call, later on anything but that tag.
fn tagging(full: &FullSpec, kinds: &[&str], creates: &[&str]) -> [Statement; 2] {
    let things = kinds
        .iter()
        .map(|kind| arn(full, &format!("ec2:*:*:{kind}/*")));
    let things: Vec<String> = things.collect();
    let cluster = full.name.as_str();
    [
        Statement::allow_one("ec2:CreateTags")
            .on_each(&things)
            .when("StringEquals", REQUEST_CLUSTER, cluster)
            .when("StringEquals", "ec2:CreateAction", json!(creates)),
        Statement::allow(["ec2:CreateTags", "ec2:DeleteTags"])
            .on_each(&things)
            .when("Null", REQUEST_CLUSTER, "true")
            .when("StringEquals", RESOURCE_CLUSTER, cluster),
    ]
}

/// Encrypted volumes and objects: only what EC2 and S3 do with keys on our behalf.
fn keys(full: &FullSpec) -> [Statement; 2] {
    let suffix = endpoint_suffix(&full.placement);
    let services = [
        format!("ec2.{}.{suffix}", full.placement.region),
        format!("s3.*.{suffix}"),
    ];
    [
        Statement::allow_one("kms:CreateGrant").on_all().when(
            "Bool",
            "kms:GrantIsForAWSResource",
            "true",
        ),
        Statement::allow([
            "kms:Decrypt",
            "kms:DescribeKey",
            "kms:Encrypt",
            "kms:GenerateDataKey*",
            "kms:ReEncrypt*",
        ])
        .on_all()
        .when("StringLike", "kms:ViaService", json!(services)),
    ]
}

fn look(full: &FullSpec) -> Vec<&'static str> {
    let mut actions = LOOK.to_vec();
    if full.iam.allow_container_registry {
        actions.extend(super::REGISTRY);
    }
    actions
}

fn change(full: &FullSpec) -> Vec<&'static str> {
    let mut actions = CHANGE.to_vec();
    if handles_termination(full) {
        actions.push("autoscaling:CompleteLifecycleAction");
    }
    if full.pods.networking == Networking::Kubenet {
        actions.extend(["ec2:CreateRoute", "ec2:DeleteRoute"]);
    }
    actions
}

fn handles_termination(full: &FullSpec) -> bool {
    full.node_termination.as_ref().is_some_and(|one| one.queue)
}
