//! Permissions of control planes: attach etcd volumes, access the state store, publish names, and everything that the
//! cloud controller manager does. As in kOps, also the permissions of the EBS CSI driver and the cluster autoscaler, which
//! operators can install (docs/compat.md, `addon-permissions`).

use crate::iam::document::Statement;
use crate::iam::{endpoint_suffix, state};
use crate::{DnsKind, FullSpec, queue_arn};
use node::components::EtcdMemberNames;
use node::config::Networking;
use node::names;
use serde_json::json;
use std::collections::BTreeSet;

/// Read actions, which AWS does not limit to resources. Elastic Load Balancing requires some of the EC2 actions to create a
/// load balancer ("Elastic Load Balancing API permissions", Elastic Load Balancing User Guide).
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

/// Actions that change resources with the cluster's tag.
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

/// Actions that create resources with the cluster's tag.
const CREATE: &[&str] = &[
    "ec2:CopyVolumes",
    "ec2:CreateSecurityGroup",
    "ec2:CreateVolume",
    "elasticloadbalancing:CreateListener",
    "elasticloadbalancing:CreateLoadBalancer",
    "elasticloadbalancing:CreateTargetGroup",
];

/// The service whose service-linked role the cloud controller manager may create.
const BALANCING: &str = "elasticloadbalancing.amazonaws.com";
const RECORD_NAMES: &str = "route53:ChangeResourceRecordSetsNormalizedRecordNames";
const RECORD_TYPES: &str = "route53:ChangeResourceRecordSetsRecordTypes";
const RECORD_ACTIONS: &str = "route53:ChangeResourceRecordSetsActions";
const RESOURCE_CLUSTER: &str = "aws:ResourceTag/KubernetesCluster";
const REQUEST_CLUSTER: &str = "aws:RequestTag/KubernetesCluster";

pub(super) fn control_plane_statements(full: &FullSpec) -> Vec<Statement> {
    let cluster = full.name.as_str();
    let volumes = Statement::allow_one("ec2:AttachVolume")
        .on_each(["*"])
        .when("StringEquals", RESOURCE_CLUSTER, cluster)
        .when("StringEquals", "aws:ResourceTag/k8s.io/role/master", "1");
    let mut all = vec![volumes];
    all.extend(state::control_plane_state_access(full));
    all.extend(dns_statements(full));
    all.extend(tagging_statements(
        full,
        &["snapshot", "volume"],
        &["CopyVolumes", "CreateVolume"],
    ));
    all.extend(tagging_statements(
        full,
        &["security-group"],
        &["CreateSecurityGroup"],
    ));
    all.extend(kms_statements(full));
    all.push(
        // Needed for an account's first load balancer.
        Statement::allow_one("iam:CreateServiceLinkedRole")
            .on_all()
            .when("StringEquals", "iam:AWSServiceName", BALANCING),
    );
    if full.node_termination.is_some() {
        all.push(
            Statement::allow(["sqs:DeleteMessage", "sqs:ReceiveMessage"]).on_one(queue_arn(full)),
        );
    }
    all.extend([
        Statement::allow(read_actions(full)).on_all(),
        Statement::allow(write_actions(full)).on_all().when(
            "StringEquals",
            RESOURCE_CLUSTER,
            cluster,
        ),
        Statement::allow(CREATE)
            .on_all()
            .when("StringEquals", REQUEST_CLUSTER, cluster),
        // The request's tags do not apply to the VPC in which a security group is created.
        Statement::allow_one("ec2:CreateSecurityGroup").on_one(make_arn(full, "ec2:*:*:vpc/*")),
    ]);
    all
}

fn make_arn(full: &FullSpec, rest: &str) -> String {
    format!("arn:{}:{rest}", full.placement.partition)
}

/// Publishing A records of exactly the names that protokube maintains in the cluster's zone; it deletes none. The condition keys:
/// <https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/specifying-rrset-conditions.html>.
fn dns_statements(full: &FullSpec) -> Vec<Statement> {
    let of_clients = [
        full.dns.api_public_name.clone(),
        full.dns.api_internal_name.clone(),
        names::dns::bootstrap_name(&full.name),
    ];
    let of_members = full.etcd.iter().flat_map(|etcd| {
        let members = etcd.members.iter().map(|member| &member.name);
        let names = EtcdMemberNames::new(&etcd.name, members, &full.name);
        names.member_hosts().collect::<Vec<_>>()
    });
    let published = of_clients.into_iter().chain(of_members);
    let published: BTreeSet<String> = published.map(|name| normalize_record_name(&name)).collect();
    let zone = match (&full.dns.zone, full.dns.kind) {
        (Some(zone), DnsKind::Public | DnsKind::Private) => zone,
        (None, _) | (_, DnsKind::None) => return Vec::new(),
    };
    let hosted_zone = make_arn(full, &format!("route53:::hostedzone/{}", zone.id));
    vec![
        Statement::allow(["route53:ChangeResourceRecordSets"])
            .on_each([&hosted_zone])
            .when("ForAllValues:StringEquals", RECORD_NAMES, json!(published))
            .when("ForAllValues:StringEquals", RECORD_TYPES, json!(["A"]))
            .when(
                "ForAllValues:StringEquals",
                RECORD_ACTIONS,
                json!(["UPSERT"]),
            ),
        Statement::allow(["route53:GetHostedZone", "route53:ListResourceRecordSets"])
            .on_each([&hosted_zone]),
        Statement::allow(["route53:GetChange"]).on_each([make_arn(full, "route53:::change/*")]),
    ]
}

/// The name as Route 53 compares it: in lower case, without the trailing dot. Cluster names have no characters that it
/// escapes.
fn normalize_record_name(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// Tagging EC2 resources of these kinds: with the cluster's tag on creation, later with any other tag.
fn tagging_statements(full: &FullSpec, kinds: &[&str], creates: &[&str]) -> [Statement; 2] {
    let arns = kinds
        .iter()
        .map(|kind| make_arn(full, &format!("ec2:*:*:{kind}/*")));
    let arns: Vec<String> = arns.collect();
    let cluster = full.name.as_str();
    [
        Statement::allow_one("ec2:CreateTags")
            .on_each(&arns)
            .when("StringEquals", REQUEST_CLUSTER, cluster)
            .when("StringEquals", "ec2:CreateAction", json!(creates)),
        Statement::allow(["ec2:CreateTags", "ec2:DeleteTags"])
            .on_each(&arns)
            .when("Null", REQUEST_CLUSTER, "true")
            .when("StringEquals", RESOURCE_CLUSTER, cluster),
    ]
}

/// Access to KMS keys, only through EC2 and S3, for encrypted volumes and objects.
fn kms_statements(full: &FullSpec) -> [Statement; 2] {
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

fn read_actions(full: &FullSpec) -> Vec<&'static str> {
    let mut actions = LOOK.to_vec();
    if full.iam.allow_container_registry {
        actions.extend(super::REGISTRY);
    }
    actions
}

fn write_actions(full: &FullSpec) -> Vec<&'static str> {
    let mut actions = CHANGE.to_vec();
    if full.node_termination.is_some() {
        actions.push("autoscaling:CompleteLifecycleAction");
    }
    if full.pods.networking == Networking::Kubenet {
        actions.extend(["ec2:CreateRoute", "ec2:DeleteRoute"]);
    }
    actions
}
