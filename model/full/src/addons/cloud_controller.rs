//! The AWS cloud controller manager: initializes Nodes with data from EC2, creates load balancers for Services, and with
//! kubenet routes to pods.

use super::manifest::AddonName;
use super::permissions::{change_own, create_own, tag_own};
use super::{Addon, Error};
use crate::FullSpec;
use crate::iam::Statement;
use node::config::Networking;
use node::digest::sha256_hex;
use templates::addons::{CloudConfig, CloudControllerManager, CloudSetting};

/// Folder of the configuration file in the pod.
const FOLDER: &str = "/etc/kubernetes/cloud-controller-manager";

/// The service whose service-linked role it may create.
const BALANCING: &str = "elasticloadbalancing.amazonaws.com";

pub(super) fn cloud_controller_addon(full: &FullSpec) -> Result<Addon, Error> {
    let manager = &full.addons.cloud_controller_manager;
    let named = AddonName::new("aws-cloud-controller.addons.k8s.io", "k8s-1.18");
    let mut flags = manager.flags.clone();
    flags.set("cloud-config", format!("{FOLDER}/cloud.config"));
    let settings = manager.settings.iter();
    let cloud_config = named.render_template(&CloudConfig {
        settings: settings
            .map(|(name, value)| CloudSetting {
                name: name.clone(),
                value: value.clone(),
            })
            .collect(),
    })?;
    let of_lease = |flag: &str, default: &str| flags.get(flag).unwrap_or(default).to_owned();
    let migrates = flags.get("enable-leader-migration") == Some("true");
    let lease = of_lease("leader-elect-resource-name", "cloud-controller-manager");
    let context = CloudControllerManager {
        // The defaults are those of its flags, and of its leader migration
        // (https://kubernetes.io/docs/tasks/administer-cluster/controller-manager-leader-migration/).
        leases: [lease]
            .into_iter()
            .chain(migrates.then(|| "cloud-provider-extraction-migration".to_owned()))
            .collect(),
        lease_namespace: of_lease("leader-elect-resource-namespace", "kube-system"),
        image: manager.image.clone(),
        arguments: flags.arguments(),
        cpu_request: manager.cpu_request.clone(),
        config_sha256: sha256_hex(&cloud_config),
        cloud_config,
        config_folder: FOLDER.to_owned(),
    };
    named.make_addon(full, &[named.render_template(&context)?])
}

/// What it calls, as in kOps. Elastic Load Balancing requires some of the EC2 actions of whoever creates a load balancer ("Elastic Load
/// Balancing API permissions", Elastic Load Balancing User Guide).
pub(super) fn permissions(full: &FullSpec) -> Vec<Statement> {
    let read = Statement::allow([
        "autoscaling:DescribeAutoScalingGroups",
        "autoscaling:DescribeTags",
        "ec2:DescribeAccountAttributes",
        "ec2:DescribeAddresses",
        "ec2:DescribeAvailabilityZones",
        "ec2:DescribeInstanceTopology",
        "ec2:DescribeInstances",
        "ec2:DescribeInternetGateways",
        "ec2:DescribeRegions",
        "ec2:DescribeRouteTables",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSubnets",
        "ec2:DescribeVpcs",
        "ec2:GetSecurityGroupsForVpc",
        "elasticloadbalancing:DescribeListeners",
        "elasticloadbalancing:DescribeLoadBalancerAttributes",
        "elasticloadbalancing:DescribeLoadBalancerPolicies",
        "elasticloadbalancing:DescribeLoadBalancers",
        "elasticloadbalancing:DescribeTargetGroupAttributes",
        "elasticloadbalancing:DescribeTargetGroups",
        "elasticloadbalancing:DescribeTargetHealth",
        "kms:DescribeKey",
    ]);
    let change = change_own(
        full,
        [
            "ec2:AuthorizeSecurityGroupIngress",
            "ec2:DeleteSecurityGroup",
            "ec2:ModifyInstanceAttribute",
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
        ],
    );
    let create = create_own(
        full,
        [
            "ec2:CreateSecurityGroup",
            "elasticloadbalancing:CreateListener",
            "elasticloadbalancing:CreateLoadBalancer",
            "elasticloadbalancing:CreateTargetGroup",
        ],
    );
    let mut all = vec![
        read.on_all(),
        change.on_all(),
        create.on_all(),
        // The request's tags do not apply to the VPC in which a security group is created.
        Statement::allow_one("ec2:CreateSecurityGroup")
            .on_one(format!("arn:{}:ec2:*:*:vpc/*", full.placement.partition)),
        // Needed for an account's first load balancer.
        Statement::allow_one("iam:CreateServiceLinkedRole")
            .on_all()
            .when("StringEquals", "iam:AWSServiceName", BALANCING),
    ];
    all.extend(tag_own(full, &["security-group"], &["CreateSecurityGroup"]));
    if full.pods.networking == Networking::Kubenet {
        all.push(change_own(full, ["ec2:CreateRoute", "ec2:DeleteRoute"]).on_all());
    }
    all
}
