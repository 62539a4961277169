//! Differences between kctl's objects and kOps', and which of them are intended.

use super::terraform::Attributes;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

type Objects = BTreeMap<(String, String), Attributes>;

/// One attribute that differs; of a policy, one statement; of an object that one side lacks, the whole.
pub struct Difference {
    pub kind: String,
    pub name: String,
    pub attribute: String,
    pub ours: Option<Value>,
    pub theirs: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |value: &Option<Value>| value.as_ref().map_or("-".into(), Value::to_string);
        write!(
            f,
            "{}/{} {}: ours {} theirs {}",
            self.kind,
            self.name,
            self.attribute,
            side(&self.ours),
            side(&self.theirs)
        )
    }
}

/// All differences between kctl's objects and kOps'.
pub fn find_differences(ours: &Objects, theirs: &Objects) -> Vec<Difference> {
    let keys: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    let mut all = Vec::new();
    for key in keys {
        let new = |attribute: &str, ours: Option<Value>, theirs: Option<Value>| Difference {
            kind: key.0.clone(),
            name: key.1.clone(),
            attribute: attribute.to_owned(),
            ours,
            theirs,
        };
        let (Some(mine), Some(other)) = (ours.get(key), theirs.get(key)) else {
            let whole = |side: &Objects| side.get(key).map(|one| Value::Object(one.clone()));
            all.push(new("", whole(ours), whole(theirs)));
            continue;
        };
        let names: BTreeSet<&String> = mine.keys().chain(other.keys()).collect();
        for name in names {
            match (mine.get(name), other.get(name)) {
                (mine, other) if mine == other => {}
                (Some(mine), Some(other)) if name == "policy" && key.0 == "iam_role_policy" => {
                    let (mine, other) = (policy_statements(mine), policy_statements(other));
                    all.extend(
                        mine.difference(&other)
                            .map(|one| new("statement", Some(one.clone().into()), None)),
                    );
                    all.extend(
                        other
                            .difference(&mine)
                            .map(|one| new("statement", None, Some(one.clone().into()))),
                    );
                }
                (Some(Value::Array(mine)), Some(Value::Array(other))) if name == "tag" => {
                    all.extend(
                        mine.iter()
                            .filter(|one| !other.contains(one))
                            .map(|one| new("tag", Some(one.clone()), None)),
                    );
                    all.extend(
                        other
                            .iter()
                            .filter(|one| !mine.contains(one))
                            .map(|one| new("tag", None, Some(one.clone()))),
                    );
                }
                (mine, other) => all.push(new(name, mine.cloned(), other.cloned())),
            }
        }
    }
    all
}

/// What a policy allows, one action on one resource at a time, as text. kOps' stand-ins for a bucket are our one bucket.
fn policy_statements(policy: &Value) -> BTreeSet<String> {
    let many = |value: &Value| match value {
        Value::Array(list) => list.clone(),
        one => vec![one.clone()],
    };
    let mut allowed = BTreeSet::new();
    for statement in many(&policy["json"]["Statement"]) {
        for action in many(&statement["Action"]) {
            for resource in many(&statement["Resource"]) {
                let mut single = statement.clone();
                single["Action"] = action.clone();
                single["Resource"] = resource;
                if take_owner(&mut single) {
                    // The rest of the statement is compared; that this is there differs once for each policy.
                    allowed.insert("aws:ResourceAccount".to_owned());
                }
                let text = single.to_string();
                let text = text.replace("placeholder-read-bucket", "state");
                allowed.insert(text.replace("placeholder-write-bucket", "state"));
            }
        }
    }
    allowed
}

/// Takes the condition on the owner of a bucket out of a statement. True if it was there.
fn take_owner(statement: &mut Value) -> bool {
    let conditions = statement
        .get_mut("Condition")
        .and_then(Value::as_object_mut);
    let Some(conditions) = conditions else {
        return false;
    };
    let equals = conditions
        .get_mut("StringEquals")
        .and_then(Value::as_object_mut);
    let Some(equals) = equals.filter(|equals| equals.contains_key("aws:ResourceAccount")) else {
        return false;
    };
    equals.remove("aws:ResourceAccount");
    if equals.is_empty() {
        conditions.remove("StringEquals");
    }
    if conditions.is_empty()
        && let Some(statement) = statement.as_object_mut()
    {
        statement.remove("Condition");
    }
    true
}

/// The topic of docs/compat.md under which a difference is stated, if it is.
pub fn compat_topic(one: &Difference) -> Option<&'static str> {
    match (&one.ours, &one.theirs) {
        (Some(ours), None) => only_kctl_topic(one, &ours.to_string()),
        (None, Some(theirs)) => only_kops_topic(one, &theirs.to_string()),
        (Some(ours), Some(theirs)) => changed_topic(one, &ours.to_string(), &theirs.to_string()),
        (None, None) => None,
    }
}

fn is_from_nodes_to_control_planes(one: &Difference) -> bool {
    let to = one
        .name
        .contains("\"security_group_id\":\"security_group/masters-");
    to && one
        .name
        .contains("\"source_security_group_id\":\"security_group/nodes-")
}

fn only_kctl_topic(one: &Difference, ours: &str) -> Option<&'static str> {
    Some(match (one.kind.as_str(), one.attribute.as_str()) {
        ("iam_role_policy", "statement" | "") if ours.contains("/assets/*") => "node-assets",
        ("iam_role_policy", "statement") if ours.contains("aws:ResourceAccount") => "bucket-owner",
        ("iam_role_policy", "statement")
            if ours.contains("/nodes/*") || ours.contains("/etcd/*") =>
        {
            "control-plane-records"
        }
        ("iam_role_policy", "statement") if ours.contains("s3:AbortMultipartUpload") => {
            "backup-permissions"
        }
        ("iam_role_policy", "statement") if has_any(ours, &FOR_TERMINATION) => "termination",
        ("iam_role_policy", "statement") if has_any(ours, &NARROWER) => "narrow-permissions",
        ("iam_role_policy", "statement") if has_any(ours, &FOR_BALANCERS) => "balancer-permissions",
        ("autoscaling_group", "tag") if ours.contains("kctl.dev/lifecycle-hooks") => "hooks-digest",
        ("iam_role" | "iam_role_policy", "") if one.name.starts_with("aws-node-kube-system") => {
            "network-roles"
        }
        ("iam_role_policy", "statement") if has_any(ours, &OF_PROTOKUBE) => "protokube-roles",
        ("vpc_endpoint", "") => "s3-endpoint",
        ("route53_record", "") if has_any(ours, &["203.0.113.123", "fd00:dead:add::"]) => {
            "placeholders"
        }
        ("security_group_rule", "") if is_from_nodes_to_control_planes(one) => {
            "control-plane-ports"
        }
        ("security_group_rule", "")
            if ours.contains("kops-controller-elb-to-cp") || one.name.contains("3988") =>
        {
            "ready-targets"
        }
        _ => return None,
    })
}

fn only_kops_topic(one: &Difference, theirs: &str) -> Option<&'static str> {
    Some(match (one.kind.as_str(), one.attribute.as_str()) {
        ("iam_role" | "iam_role_policy", "")
            if ["aws-node-termination-handler-", "dns-controller-"]
                .iter()
                .any(|account| one.name.starts_with(account)) =>
        {
            "protokube-roles"
        }
        ("iam_role_policy", "statement") if has_any(theirs, &AUTOSCALER) => "addon-permissions",
        ("iam_role_policy", "statement")
            if theirs.contains("ec2:AssignIpv6Addresses") && one.name.starts_with("nodes-") =>
        {
            "ipv6-prefixes"
        }
        ("iam_role_policy", "statement") if has_any(theirs, &NARROWER) => "narrow-permissions",
        ("iam_role_policy", "statement") if has_any(theirs, &NOT_CALLED) => "narrow-permissions",
        ("iam_role_policy", "statement") if theirs.contains("s3:DeleteObjectVersion") => {
            "backup-permissions"
        }
        ("iam_role_policy", "" | "statement") if has_any(theirs, &OF_VPC_CNI) => "network-roles",
        ("security_group_rule", "") if is_from_nodes_to_control_planes(one) => {
            "control-plane-ports"
        }
        _ => return None,
    })
}

/// What Elastic Load Balancing demands of who makes a balancer.
const FOR_BALANCERS: [&str; 5] = [
    "ec2:DescribeAccountAttributes",
    "ec2:DescribeAddresses",
    "ec2:DescribeInternetGateways",
    "ec2:DescribeRouteTables",
    "ec2:GetSecurityGroupsForVpc",
];

/// What keeps a control plane that etcd needs.
const FOR_TERMINATION: [&str; 1] = ["autoscaling:RecordLifecycleActionHeartbeat"];

/// Of these kctl's statements have fewer resources or a condition more than kOps'.
const NARROWER: [&str; 6] = [
    "ec2:AssignIpv6Addresses",
    "ec2:ModifyNetworkInterfaceAttribute",
    "iam:CreateServiceLinkedRole",
    "route53:ChangeResourceRecordSets",
    "sqs:DeleteMessage",
    "sqs:ReceiveMessage",
];

/// What protokube does in the place of pods that have roles in kOps.
const OF_PROTOKUBE: [&str; 5] = [
    "autoscaling:CompleteLifecycleAction",
    "autoscaling:DescribeAutoScalingInstances",
    "route53:GetChange",
    "route53:GetHostedZone",
    "route53:ListResourceRecordSets",
];

/// Of the cluster autoscaler.
const AUTOSCALER: [&str; 7] = [
    "autoscaling:DescribeLaunchConfigurations",
    "autoscaling:DescribeScalingActivities",
    "autoscaling:SetDesiredCapacity",
    "autoscaling:TerminateInstanceInAutoScalingGroup",
    "ec2:DescribeImages",
    "ec2:DescribeLaunchTemplateVersions",
    "ec2:GetInstanceTypesFromInstanceRequirements",
];

/// Of the Amazon VPC CNI.
const OF_VPC_CNI: [&str; 14] = [
    "ec2:*:*:network-interface/*",
    "ec2:AssignPrivateIpAddresses",
    "ec2:AttachNetworkInterface",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeTags",
    "ec2:DetachNetworkInterface",
    "ec2:ModifyNetworkInterfaceAttribute",
    "ec2:UnassignPrivateIpAddresses",
];

/// kctl's agents make no such call.
const NOT_CALLED: [&str; 4] = [
    "autoscaling:DescribeLifecycleHooks",
    "ec2:DescribeNetworkInterfaces",
    "route53:ListHostedZones",
    "route53:ListTagsForResource",
];

fn has_any(statement: &str, actions: &[&str]) -> bool {
    actions.iter().any(|action| statement.contains(action))
}

fn changed_topic(one: &Difference, ours: &str, theirs: &str) -> Option<&'static str> {
    let kept = "\"delete_on_termination\":false";
    let deleted = "\"delete_on_termination\":true";
    Some(match (one.kind.as_str(), one.attribute.as_str()) {
        ("lb_target_group", "health_check")
            if ours.contains("\"path\":\"/readyz\"") && theirs.contains("\"protocol\":\"TCP\"") =>
        {
            "ready-targets"
        }
        ("lb_target_group", "health_check") if ours.replace("\"timeout\":9,", "") == *theirs => {
            "health-check-timeout"
        }
        ("launch_template", "block_device_mappings") if ours.replace(kept, deleted) == *theirs => {
            "volumes-kept"
        }
        ("sqs_queue", "policy") if ours.contains("aws:SourceAccount") => "queue-source",
        ("security_group_rule", "rule_name") if one.name.contains("prefix_list_ids") => {
            "prefix-list-names"
        }
        _ => return None,
    })
}
