//! The AWS load balancer controller: application load balancers for Ingresses, network load balancers for Services.

use super::control_planes::{
    controller_replicas, needs_host_network, rollout_strategy, tolerations,
};
use super::crds::{compressed_crds, decompress};
use super::manifest::AddonName;
use super::permissions::{change_own, create_own, tag_own};
use super::tags::own_tags;
use super::{Addon, Error};
use crate::FullSpec;
use crate::iam::Statement;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use templates::Template;

/// Of the manifest and of its chart; another image may be in the spec.
const VERSION: &str = "v3.3.0";
const CHART: &str = "aws-load-balancer-controller-3.3.0";

/// Settings of the controller: `spec.awsLoadBalancerController`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadBalancerController {
    /// Tag of its image; `None`: that of the addon's version.
    pub version: Option<String>,
    /// It puts web ACLs of AWS WAF Classic before load balancers.
    pub waf: bool,
    /// The same with AWS WAF.
    pub waf_v2: bool,
    /// It turns on AWS Shield Advanced.
    pub shield: bool,
    pub cpu_request: Option<String>,
    pub cpu_limit: Option<String>,
    pub memory_request: Option<String>,
    pub memory_limit: Option<String>,
}

#[derive(Serialize)]
struct Manifest {
    version: &'static str,
    chart: &'static str,
    labels: Value,
    image: String,
    arguments: Vec<String>,
    resources: Value,
    replicas: i32,
    host_network: Option<bool>,
    strategy: Option<Value>,
    tolerations: Vec<Value>,
}

impl Template for Manifest {
    const NAME: &'static str = "load_balancer_controller/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("load_balancer_controller/manifest.yaml.hbs");
}

pub(super) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let Some(controller) = &full.addons.load_balancer_controller else {
        return Ok(None);
    };
    let named = AddonName::new("aws-load-balancer-controller.addons.k8s.io", "k8s-1.19");
    let definitions = decompress(named, compressed_crds!("load_balancer_controller"))?;
    let manifest = named.render_template(&make_manifest(full, controller))?;
    named.make_addon(full, &[definitions, manifest]).map(Some)
}

fn make_manifest(full: &FullSpec, controller: &LoadBalancerController) -> Manifest {
    let tag = controller.version.as_deref().unwrap_or(VERSION);
    Manifest {
        version: VERSION,
        chart: CHART,
        labels: json!({
            "app.kubernetes.io/instance": "aws-load-balancer-controller",
            "app.kubernetes.io/name": "aws-load-balancer-controller",
            "app.kubernetes.io/version": VERSION,
            "helm.sh/chart": CHART,
        }),
        image: format!("public.ecr.aws/eks/aws-load-balancer-controller:{tag}"),
        arguments: vec![
            format!("--cluster-name={}", full.name),
            "--ingress-class=alb".to_owned(),
            format!("--aws-region={}", full.placement.region),
            "--metrics-bind-addr=:9442".to_owned(),
            format!("--enable-waf={}", controller.waf),
            format!("--enable-wafv2={}", controller.waf_v2),
            format!("--enable-shield={}", controller.shield),
            format!("--default-tags={}", own_tags(full)),
        ],
        resources: json!({
            "requests": {
                "cpu": controller.cpu_request.as_deref().unwrap_or("100m"),
                "memory": controller.memory_request.as_deref().unwrap_or("200Mi"),
            },
            "limits": {
                "cpu": controller.cpu_limit.as_deref().unwrap_or("200m"),
                "memory": controller.memory_limit.as_deref().unwrap_or("500Mi"),
            },
        }),
        replicas: controller_replicas(full),
        host_network: needs_host_network(full),
        strategy: rollout_strategy(full),
        tolerations: tolerations(full),
    }
}

/// What it calls, as in kOps: it creates and changes only what has the cluster's tag.
pub(super) fn permissions(full: &FullSpec) -> Vec<Statement> {
    let Some(controller) = &full.addons.load_balancer_controller else {
        return Vec::new();
    };
    let mut all = vec![
        Statement::allow(READ).on_all(),
        change_own(full, CHANGE).on_all(),
        create_own(full, CREATE).on_all(),
        // The request's tags do not apply to the VPC in which a security group is created.
        Statement::allow_one("ec2:CreateSecurityGroup")
            .on_one(format!("arn:{}:ec2:*:*:vpc/*", full.placement.partition)),
    ];
    all.extend(tag_own(full, &["security-group"], &["CreateSecurityGroup"]));
    // Actions of these services know no tag of the cluster.
    for (on, actions) in [
        (controller.waf, &WAF[..]),
        (controller.waf_v2, &WAF_V2),
        (controller.shield, &SHIELD),
    ] {
        if on {
            all.push(Statement::allow(actions).on_all());
        }
    }
    all
}

/// Reading route tables is in none of kOps' roles: where subnets have no tags, the controller takes those that are reachable.
const READ: [&str; 27] = [
    "acm:DescribeCertificate",
    "acm:ListCertificates",
    "cognito-idp:DescribeUserPoolClient",
    "ec2:DescribeAccountAttributes",
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeInstances",
    "ec2:DescribeInternetGateways",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeRouteTables",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcPeeringConnections",
    "ec2:DescribeVpcs",
    "ec2:GetSecurityGroupsForVpc",
    "elasticloadbalancing:DescribeCapacityReservation",
    "elasticloadbalancing:DescribeListenerAttributes",
    "elasticloadbalancing:DescribeListenerCertificates",
    "elasticloadbalancing:DescribeListeners",
    "elasticloadbalancing:DescribeLoadBalancerAttributes",
    "elasticloadbalancing:DescribeLoadBalancers",
    "elasticloadbalancing:DescribeRules",
    "elasticloadbalancing:DescribeTags",
    "elasticloadbalancing:DescribeTargetGroupAttributes",
    "elasticloadbalancing:DescribeTargetGroups",
    "elasticloadbalancing:DescribeTargetHealth",
    "elasticloadbalancing:DescribeTrustStores",
    "elasticloadbalancing:SetRulePriorities",
];

const CHANGE: [&str; 23] = [
    "ec2:AuthorizeSecurityGroupIngress",
    "ec2:DeleteSecurityGroup",
    "ec2:RevokeSecurityGroupIngress",
    "elasticloadbalancing:AddListenerCertificates",
    "elasticloadbalancing:AddTags",
    "elasticloadbalancing:DeleteListener",
    "elasticloadbalancing:DeleteLoadBalancer",
    "elasticloadbalancing:DeleteRule",
    "elasticloadbalancing:DeleteTargetGroup",
    "elasticloadbalancing:DeregisterTargets",
    "elasticloadbalancing:ModifyCapacityReservation",
    "elasticloadbalancing:ModifyListener",
    "elasticloadbalancing:ModifyListenerAttributes",
    "elasticloadbalancing:ModifyLoadBalancerAttributes",
    "elasticloadbalancing:ModifyRule",
    "elasticloadbalancing:ModifyTargetGroup",
    "elasticloadbalancing:ModifyTargetGroupAttributes",
    "elasticloadbalancing:RegisterTargets",
    "elasticloadbalancing:RemoveListenerCertificates",
    "elasticloadbalancing:RemoveTags",
    "elasticloadbalancing:SetIpAddressType",
    "elasticloadbalancing:SetSecurityGroups",
    "elasticloadbalancing:SetSubnets",
];

const CREATE: [&str; 5] = [
    "ec2:CreateSecurityGroup",
    "elasticloadbalancing:CreateListener",
    "elasticloadbalancing:CreateLoadBalancer",
    "elasticloadbalancing:CreateRule",
    "elasticloadbalancing:CreateTargetGroup",
];

const WAF: [&str; 5] = [
    "elasticloadbalancing:SetWebACL",
    "waf-regional:AssociateWebACL",
    "waf-regional:DisassociateWebACL",
    "waf-regional:GetWebACL",
    "waf-regional:GetWebACLForResource",
];

const WAF_V2: [&str; 5] = [
    "elasticloadbalancing:SetWebACL",
    "wafv2:AssociateWebACL",
    "wafv2:DisassociateWebACL",
    "wafv2:GetWebACL",
    "wafv2:GetWebACLForResource",
];

const SHIELD: [&str; 4] = [
    "shield:CreateProtection",
    "shield:DeleteProtection",
    "shield:DescribeProtection",
    "shield:GetSubscriptionState",
];
