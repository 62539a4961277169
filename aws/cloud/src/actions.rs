//! The IAM actions that a plan's changes need, by kind of object. What was read for the plan needs none: it has been read.

use cloud::{
    AutoscalingGroup, Cloud, DiscoveryDocument, IamInstanceProfile, LaunchTemplate, Variant,
};
use engine::{Action, Plan, Ref, Snapshot, Step};
use std::collections::{BTreeMap, BTreeSet};

/// The actions of a kind: to create, to update and to delete an object. An update may need fewer of them.
struct KindActions {
    kind: &'static str,
    create: &'static [&'static str],
    update: &'static [&'static str],
    delete: &'static [&'static str],
}

const fn row(
    kind: &'static str,
    create: &'static [&'static str],
    update: &'static [&'static str],
    delete: &'static [&'static str],
) -> KindActions {
    KindActions {
        kind,
        create,
        update,
        delete,
    }
}

/// The roles that AWS makes in the caller's name with the first Auto Scaling group and the first balancer of an account.
const AUTO_SCALING_ROLE: &str =
    "aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling";
const BALANCER_ROLE: &str =
    "aws-service-role/elasticloadbalancing.amazonaws.com/AWSServiceRoleForElasticLoadBalancing";

const RETAG: &[&str] = &["ec2:CreateTags", "ec2:DeleteTags"];

/// Of every kind. What AWS asks for besides the calls themselves is in `docs/getting-started.md`, Permissions.
const ACTIONS: &[KindActions] = &[
    row(
        "autoscaling_group",
        &[
            "autoscaling:CreateAutoScalingGroup",
            "autoscaling:CreateOrUpdateTags",
            "autoscaling:EnableMetricsCollection",
            "ec2:RunInstances",
        ],
        &[
            "autoscaling:AttachLoadBalancerTargetGroups",
            "autoscaling:AttachLoadBalancers",
            "autoscaling:CreateOrUpdateTags",
            "autoscaling:DeleteTags",
            "autoscaling:DetachLoadBalancerTargetGroups",
            "autoscaling:DetachLoadBalancers",
            "autoscaling:DisableMetricsCollection",
            "autoscaling:EnableMetricsCollection",
            "autoscaling:ResumeProcesses",
            "autoscaling:SuspendProcesses",
            "autoscaling:UpdateAutoScalingGroup",
            "ec2:RunInstances",
        ],
        &[
            "autoscaling:DeleteAutoScalingGroup",
            "autoscaling:UpdateAutoScalingGroup",
        ],
    ),
    row(
        "autoscaling_lifecycle_hook",
        &[
            "autoscaling:CreateOrUpdateTags",
            "autoscaling:PutLifecycleHook",
        ],
        &[
            "autoscaling:CreateOrUpdateTags",
            "autoscaling:PutLifecycleHook",
        ],
        &[
            "autoscaling:CreateOrUpdateTags",
            "autoscaling:DeleteLifecycleHook",
        ],
    ),
    row(
        "autoscaling_warm_pool",
        &["autoscaling:PutWarmPool"],
        &["autoscaling:PutWarmPool"],
        &["autoscaling:DeleteWarmPool"],
    ),
    row(
        "cloudwatch_event_rule",
        &["events:PutRule", "events:TagResource"],
        &[
            "events:PutRule",
            "events:TagResource",
            "events:UntagResource",
        ],
        &["events:DeleteRule", "events:RemoveTargets"],
    ),
    row(
        "cloudwatch_event_target",
        &["events:PutTargets"],
        &["events:PutTargets"],
        &["events:RemoveTargets"],
    ),
    row(
        "discovery_document",
        &["s3:PutObject"],
        &["s3:PutObject"],
        &["s3:DeleteObject"],
    ),
    row(
        "ebs_volume",
        &["ec2:CreateTags", "ec2:CreateVolume"],
        &["ec2:CreateTags", "ec2:DeleteTags", "ec2:ModifyVolume"],
        &["ec2:DeleteVolume"],
    ),
    row(
        "egress_only_internet_gateway",
        &["ec2:CreateEgressOnlyInternetGateway", "ec2:CreateTags"],
        RETAG,
        &["ec2:DeleteEgressOnlyInternetGateway"],
    ),
    row(
        "eip",
        &["ec2:AllocateAddress", "ec2:CreateTags"],
        RETAG,
        &["ec2:ReleaseAddress"],
    ),
    row(
        "iam_instance_profile",
        &[
            "iam:AddRoleToInstanceProfile",
            "iam:CreateInstanceProfile",
            "iam:TagInstanceProfile",
        ],
        &[
            "iam:AddRoleToInstanceProfile",
            "iam:RemoveRoleFromInstanceProfile",
            "iam:TagInstanceProfile",
            "iam:UntagInstanceProfile",
        ],
        &[
            "iam:DeleteInstanceProfile",
            "iam:RemoveRoleFromInstanceProfile",
        ],
    ),
    row(
        "iam_openid_connect_provider",
        &[
            "iam:CreateOpenIDConnectProvider",
            "iam:TagOpenIDConnectProvider",
        ],
        &[
            "iam:AddClientIDToOpenIDConnectProvider",
            "iam:RemoveClientIDFromOpenIDConnectProvider",
            "iam:TagOpenIDConnectProvider",
            "iam:UntagOpenIDConnectProvider",
            "iam:UpdateOpenIDConnectProviderThumbprint",
        ],
        &["iam:DeleteOpenIDConnectProvider"],
    ),
    row(
        "iam_role",
        &["iam:CreateRole", "iam:TagRole"],
        &[
            "iam:DeleteRolePermissionsBoundary",
            "iam:PutRolePermissionsBoundary",
            "iam:TagRole",
            "iam:UntagRole",
            "iam:UpdateAssumeRolePolicy",
        ],
        &["iam:DeleteRole"],
    ),
    row(
        "iam_role_policy",
        &["iam:PutRolePolicy"],
        &["iam:PutRolePolicy"],
        &["iam:DeleteRolePolicy"],
    ),
    row(
        "iam_role_policy_attachment",
        &["iam:AttachRolePolicy"],
        &["iam:AttachRolePolicy"],
        &["iam:DetachRolePolicy"],
    ),
    row(
        "internet_gateway",
        &[
            "ec2:AttachInternetGateway",
            "ec2:CreateInternetGateway",
            "ec2:CreateTags",
        ],
        &[
            "ec2:AttachInternetGateway",
            "ec2:CreateTags",
            "ec2:DeleteTags",
        ],
        &["ec2:DeleteInternetGateway", "ec2:DetachInternetGateway"],
    ),
    row(
        "key_pair",
        &["ec2:CreateTags", "ec2:ImportKeyPair"],
        &[
            "ec2:CreateTags",
            "ec2:DeleteKeyPair",
            "ec2:DeleteTags",
            "ec2:ImportKeyPair",
        ],
        &["ec2:DeleteKeyPair"],
    ),
    row(
        "launch_template",
        &["ec2:CreateLaunchTemplate", "ec2:CreateTags"],
        &[
            "ec2:CreateLaunchTemplateVersion",
            "ec2:CreateTags",
            "ec2:DeleteLaunchTemplateVersions",
            "ec2:DeleteTags",
            "ec2:ModifyLaunchTemplate",
        ],
        &["ec2:DeleteLaunchTemplate"],
    ),
    row(
        "lb",
        &[
            "ec2:DescribeAccountAttributes",
            "ec2:GetSecurityGroupsForVpc",
            "elasticloadbalancing:AddTags",
            "elasticloadbalancing:CreateLoadBalancer",
            "elasticloadbalancing:ModifyLoadBalancerAttributes",
        ],
        &[
            "elasticloadbalancing:AddTags",
            "elasticloadbalancing:ModifyLoadBalancerAttributes",
            "elasticloadbalancing:RemoveTags",
            "elasticloadbalancing:SetIpAddressType",
            "elasticloadbalancing:SetSecurityGroups",
            "elasticloadbalancing:SetSubnets",
        ],
        &["elasticloadbalancing:DeleteLoadBalancer"],
    ),
    row(
        "lb_listener",
        &["elasticloadbalancing:CreateListener"],
        &["elasticloadbalancing:ModifyListener"],
        &["elasticloadbalancing:DeleteListener"],
    ),
    row(
        "lb_target_group",
        &[
            "elasticloadbalancing:AddTags",
            "elasticloadbalancing:CreateTargetGroup",
            "elasticloadbalancing:ModifyTargetGroupAttributes",
        ],
        &[
            "elasticloadbalancing:AddTags",
            "elasticloadbalancing:ModifyTargetGroup",
            "elasticloadbalancing:ModifyTargetGroupAttributes",
            "elasticloadbalancing:RemoveTags",
        ],
        &["elasticloadbalancing:DeleteTargetGroup"],
    ),
    row(
        "nat_gateway",
        &["ec2:CreateNatGateway", "ec2:CreateTags"],
        RETAG,
        &["ec2:DeleteNatGateway"],
    ),
    row(
        "route",
        &["ec2:CreateRoute"],
        &["ec2:ReplaceRoute"],
        &["ec2:DeleteRoute"],
    ),
    row(
        "route53_record",
        &["route53:ChangeResourceRecordSets"],
        &["route53:ChangeResourceRecordSets"],
        &["route53:ChangeResourceRecordSets"],
    ),
    row(
        "route53_zone_association",
        &["route53:AssociateVPCWithHostedZone"],
        &["route53:AssociateVPCWithHostedZone"],
        &["route53:DisassociateVPCFromHostedZone"],
    ),
    row(
        "route_table",
        &["ec2:CreateRouteTable", "ec2:CreateTags"],
        RETAG,
        &["ec2:DeleteRouteTable"],
    ),
    row(
        "route_table_association",
        &["ec2:AssociateRouteTable"],
        &["ec2:ReplaceRouteTableAssociation"],
        &["ec2:DisassociateRouteTable"],
    ),
    row(
        "s3_object",
        &["s3:PutObject"],
        &["s3:PutObject"],
        &["s3:DeleteObject"],
    ),
    row(
        "security_group",
        &["ec2:CreateSecurityGroup", "ec2:CreateTags"],
        RETAG,
        &["ec2:DeleteSecurityGroup"],
    ),
    row(
        "security_group_rule",
        &[
            "ec2:AuthorizeSecurityGroupEgress",
            "ec2:AuthorizeSecurityGroupIngress",
            "ec2:CreateTags",
        ],
        &[
            "ec2:AuthorizeSecurityGroupEgress",
            "ec2:AuthorizeSecurityGroupIngress",
            "ec2:CreateTags",
        ],
        &[
            "ec2:RevokeSecurityGroupEgress",
            "ec2:RevokeSecurityGroupIngress",
        ],
    ),
    row(
        "sqs_queue",
        &["sqs:CreateQueue", "sqs:TagQueue"],
        &["sqs:SetQueueAttributes", "sqs:TagQueue", "sqs:UntagQueue"],
        &["sqs:DeleteQueue"],
    ),
    row(
        "subnet",
        &[
            "ec2:AssociateSubnetCidrBlock",
            "ec2:CreateSubnet",
            "ec2:CreateTags",
            "ec2:ModifySubnetAttribute",
        ],
        &[
            "ec2:AssociateSubnetCidrBlock",
            "ec2:CreateTags",
            "ec2:DeleteTags",
            "ec2:ModifySubnetAttribute",
        ],
        &["ec2:DeleteSubnet"],
    ),
    row(
        "vpc",
        &["ec2:CreateTags", "ec2:CreateVpc", "ec2:ModifyVpcAttribute"],
        &[
            "ec2:AssociateVpcCidrBlock",
            "ec2:CreateTags",
            "ec2:DeleteTags",
            "ec2:ModifyVpcAttribute",
        ],
        &["ec2:DeleteVpc"],
    ),
    row(
        "vpc_dhcp_options",
        &["ec2:CreateDhcpOptions", "ec2:CreateTags"],
        RETAG,
        &["ec2:DeleteDhcpOptions"],
    ),
    row(
        "vpc_dhcp_options_association",
        &["ec2:AssociateDhcpOptions"],
        &["ec2:AssociateDhcpOptions"],
        &["ec2:AssociateDhcpOptions"],
    ),
    row(
        "vpc_endpoint",
        &["ec2:CreateTags", "ec2:CreateVpcEndpoint"],
        &["ec2:CreateTags", "ec2:DeleteTags", "ec2:ModifyVpcEndpoint"],
        &["ec2:DeleteVpcEndpoints"],
    ),
    row(
        "vpc_ipv4_cidr_block_association",
        &["ec2:AssociateVpcCidrBlock"],
        &["ec2:AssociateVpcCidrBlock"],
        &["ec2:DisassociateVpcCidrBlock"],
    ),
];

/// The actions of a step with an object of that kind.
fn step_actions(kind: &str, action: Action) -> &'static [&'static str] {
    let Some(row) = ACTIONS.iter().find(|row| row.kind == kind) else {
        return &[];
    };
    match action {
        Action::Create => row.create,
        Action::Update => row.update,
        Action::Delete => row.delete,
    }
}

/// Where a plan is carried out.
#[derive(Clone, Debug)]
pub struct PlanPlace {
    /// `aws`, `aws-cn`, `aws-us-gov`.
    pub partition: String,
    /// Twelve digits.
    pub account: String,
    /// An object of the cluster in the state store, `BUCKET/KEY`; `None`: the store is no bucket.
    pub state_object: Option<String>,
    /// The role in each instance profile of the user's, both by name.
    pub profile_roles: BTreeMap<String, String>,
}

/// The actions that a plan needs, by the resource that they are about: an ARN where policies are usually as narrow, else `*`. Every
/// plan's run writes to the state store. `seen`: what the plan leaves as it is.
pub fn planned_actions(
    plan: &Plan<Cloud>,
    seen: &Snapshot<Cloud>,
    place: &PlanPlace,
) -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut needed: BTreeMap<String, BTreeSet<&'static str>> = BTreeMap::new();
    let mut need = |resource: String, actions: &[&'static str]| {
        needed.entry(resource).or_default().extend(actions);
    };
    if let Some(arn) = place.state_object_arn() {
        need(arn, &["s3:DeleteObject", "s3:PutObject"]);
    }
    for step in plan.steps.values() {
        let Some(object) = object_of(step) else {
            continue;
        };
        let Some(resource) = place.resource_of(object) else {
            continue;
        };
        need(resource, step_actions(step.id.kind(), step.action));
        if step.action != Action::Delete
            && let Some(profile) = IamInstanceProfile::of(object)
            && let Some(role) = &profile.role_name
        {
            need(place.role_arn(role), &["iam:PassRole"]);
        }
        if step.action != Action::Delete
            && let Some(group) = AutoscalingGroup::of(object)
            && let Some(role) = place.role_of_instances(group, plan, seen)
        {
            need(role, &["iam:PassRole"]);
        }
        let role_of_service = match (object, step.action) {
            (Cloud::AutoscalingGroup(_), Action::Create) => Some(AUTO_SCALING_ROLE),
            (Cloud::Lb(_), Action::Create) => Some(BALANCER_ROLE),
            _ => None,
        };
        if let Some(role) = role_of_service {
            need(
                place.iam_arn("role", role),
                &["iam:CreateServiceLinkedRole"],
            );
        }
    }
    needed
}

fn object_of(step: &Step<Cloud>) -> Option<&Cloud> {
    let before = step.before.as_ref().map(|observed| &observed.resource);
    step.after.as_ref().or(before)
}

/// An object as the plan makes it, or leaves it.
fn planned_object<'a>(
    of: &Ref,
    plan: &'a Plan<Cloud>,
    seen: &'a Snapshot<Cloud>,
) -> Option<&'a Cloud> {
    let id = of.id()?;
    let planned = plan.steps.get(&id).and_then(|step| step.after.as_ref());
    planned.or_else(|| Some(&seen.find(&id)?.resource))
}

impl PlanPlace {
    /// `None`: an object of a store that is no bucket.
    fn resource_of(&self, object: &Cloud) -> Option<String> {
        Some(match object {
            Cloud::S3Object(_) => self.state_object_arn()?,
            Cloud::DiscoveryDocument(document) => self.document_arn(document)?,
            Cloud::IamRole(role) => self.role_arn(&Ref::Given(role.role_name.clone())),
            Cloud::IamRolePolicy(policy) => self.role_arn(&policy.role_name),
            Cloud::IamRolePolicyAttachment(attached) => self.role_arn(&attached.role_name),
            Cloud::IamInstanceProfile(profile) => {
                self.iam_arn("instance-profile", &profile.instance_profile_name)
            }
            _ => "*".to_owned(),
        })
    }

    fn state_object_arn(&self) -> Option<String> {
        let object = self.state_object.as_ref()?;
        Some(format!("arn:{}:s3:::{object}", self.partition))
    }

    fn document_arn(&self, document: &DiscoveryDocument) -> Option<String> {
        let store = document.store.strip_prefix("s3://")?;
        let (partition, key) = (&self.partition, &document.key);
        Some(format!("arn:{partition}:s3:::{store}/{key}"))
    }

    /// The role that Auto Scaling hands to the instances of a group.
    fn role_of_instances(
        &self,
        group: &AutoscalingGroup,
        plan: &Plan<Cloud>,
        seen: &Snapshot<Cloud>,
    ) -> Option<String> {
        let template = planned_object(&group.launch_template.launch_template_id, plan, seen)?;
        let profile = match &LaunchTemplate::of(template)?.iam_instance_profile {
            Ref::Given(name) => {
                let role = self.profile_roles.get(name)?;
                return Some(self.iam_arn("role", role));
            }
            own @ Ref::Own { .. } => planned_object(own, plan, seen)?,
        };
        let role = IamInstanceProfile::of(profile)?.role_name.as_ref()?;
        Some(self.role_arn(role))
    }

    fn role_arn(&self, role: &Ref) -> String {
        let (Ref::Own { name, .. } | Ref::Given(name)) = role;
        self.iam_arn("role", name)
    }

    fn iam_arn(&self, what: &str, name: &str) -> String {
        format!("arn:{}:iam::{}:{what}/{name}", self.partition, self.account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const SERVICES: [&str; 8] = [
        "autoscaling",
        "ec2",
        "elasticloadbalancing",
        "events",
        "iam",
        "route53",
        "s3",
        "sqs",
    ];

    /// What the files of kinds call, but for reads.
    fn writes_of_kinds() -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kinds");
        let mut found = BTreeSet::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            let quoted = text.split('"').filter_map(|text| {
                let (service, call) = text.split_once(':')?;
                let is_read = ["Describe", "Get", "List"]
                    .iter()
                    .any(|read| call.starts_with(read));
                let is_call = call.starts_with(|first: char| first.is_ascii_uppercase())
                    && call.chars().all(|char| char.is_ascii_alphanumeric());
                let is_action = SERVICES.contains(&service) && is_call && !is_read;
                is_action.then(|| text.to_owned())
            });
            found.extend(quoted);
        }
        found
    }

    #[test]
    fn the_actions_of_all_kinds_are_what_kinds_call() {
        let kinds: Vec<&str> = ACTIONS.iter().map(|row| row.kind).collect();
        let mut types = cloud::TYPES.to_vec();
        types.sort_unstable();
        assert_eq!(kinds, types);
        let all = ACTIONS
            .iter()
            .flat_map(|row| [row.create, row.update, row.delete].concat());
        let all: BTreeSet<String> = all.map(str::to_owned).collect();
        // What AWS does in the caller's name, and what the store calls.
        let beyond = [
            "ec2:DescribeAccountAttributes",
            "ec2:GetSecurityGroupsForVpc",
            "ec2:RunInstances",
            "s3:DeleteObject",
            "s3:PutObject",
        ];
        let beyond: BTreeSet<String> = beyond.map(str::to_owned).into();
        let called: BTreeSet<String> = writes_of_kinds();
        let missing: Vec<&String> = called.difference(&all).collect();
        let idle = all.difference(&called);
        let idle: Vec<&String> = idle.filter(|action| !beyond.contains(*action)).collect();
        assert!(
            missing.is_empty() && idle.is_empty(),
            "the table lacks {missing:?} and has {idle:?} that no kind calls"
        );
    }
}
