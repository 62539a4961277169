//! IAM policy documents of machines: what each role may do, no more. Conditions on the cluster's tag keep a
//! machine from touching what is not its cluster's.

mod control_plane;
mod document;
mod state;

pub use document::VERSION;

use crate::{FullSpec, Placement};
use document::{Policy, Statement};
use node::config::Role;
use serde_json::{Value, json};

/// How the spec's maps name a role.
pub fn key(role: Role) -> &'static str {
    match role {
        Role::ControlPlane => "control-plane",
        Role::Node => "node",
        Role::Bastion => "bastion",
    }
}

/// Who may assume a machine's role: EC2.
pub fn trust(placement: &Placement) -> Value {
    json!({
        "Statement": [{
            "Action": "sts:AssumeRole",
            "Effect": "Allow",
            "Principal": {"Service": format!("ec2.{}", dns_suffix(placement))},
        }],
        "Version": VERSION,
    })
}

/// A role's own policy; `None`: it needs none.
pub fn policy(full: &FullSpec, role: Role) -> Option<Value> {
    let statements = match role {
        Role::ControlPlane => control_plane::statements(full),
        Role::Node => node(full),
        Role::Bastion => Vec::new(),
    };
    (!statements.is_empty()).then(|| Policy::of(statements).json())
}

/// The policy of `spec.additionalPolicies`, as the user wrote its statements.
pub fn additional(full: &FullSpec, role: Role) -> Option<Value> {
    let statements = full.iam.additional_policies.get(key(role))?;
    Some(json!({"Statement": statements, "Version": VERSION}))
}

fn node(full: &FullSpec) -> Vec<Statement> {
    let mut statements = state::node(full);
    if full.iam.allow_container_registry {
        statements.push(Statement::allow(REGISTRY).on_all());
    }
    statements
}

/// Reading images from ECR.
const REGISTRY: &[&str] = &[
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:DescribeRepositories",
    "ecr:GetAuthorizationToken",
    "ecr:GetDownloadUrlForLayer",
    "ecr:GetRepositoryPolicy",
    "ecr:ListImages",
];

/// The domain of AWS' services in service principals.
fn dns_suffix(placement: &Placement) -> &'static str {
    match placement.partition.as_str() {
        "aws-cn" => "amazonaws.com.cn",
        _ => "amazonaws.com",
    }
}

/// The domain of AWS' services in their addresses, which `kms:ViaService` has: `dnsSuffix` of the SDK's `partitions.json`.
fn endpoint_suffix(placement: &Placement) -> &'static str {
    match placement.partition.as_str() {
        "aws-cn" => "amazonaws.com.cn",
        "aws-eusc" => "amazonaws.eu",
        "aws-iso" => "c2s.ic.gov",
        "aws-iso-b" => "sc2s.sgov.gov",
        "aws-iso-e" => "cloud.adc-e.uk",
        "aws-iso-f" => "csp.hci.ic.gov",
        _ => "amazonaws.com",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::tests::spec;
    use node::config::Role;

    fn texts(value: &Value) -> Vec<String> {
        let list = value
            .as_array()
            .cloned()
            .unwrap_or_else(|| vec![value.clone()]);
        list.iter()
            .map(|one| one.as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn what_changes_something_is_limited_to_what_is_the_clusters() {
        for full in [spec::minimal(), spec::ha(), spec::private(), spec::shared()] {
            let policy = policy(&full, Role::ControlPlane).unwrap();
            for statement in policy["Statement"].as_array().unwrap() {
                let everywhere = texts(&statement["Resource"]) == ["*"];
                if !everywhere || !statement["Condition"].is_null() {
                    continue;
                }
                for action in texts(&statement["Action"]) {
                    let (service, verb) = action.split_once(':').unwrap();
                    let looks = ["Describe", "Get", "List"]
                        .iter()
                        .any(|one| verb.starts_with(one));
                    assert!(looks || service == "ecr", "{action}");
                }
            }
        }
    }

    #[test]
    fn only_the_clusters_names_and_messages_are_its_own() {
        let full = spec::minimal();
        let policy = policy(&full, Role::ControlPlane).unwrap();
        let of = |action: &str| -> Value {
            let all = policy["Statement"].as_array().unwrap();
            let has = |one: &&Value| texts(&one["Action"]).iter().any(|other| other == action);
            all.iter().find(has).cloned().unwrap_or_default()
        };
        let names = &of("route53:ChangeResourceRecordSets")["Condition"];
        let names = &names["ForAllValues:StringEquals"]["route53:ChangeResourceRecordSetsNormalizedRecordNames"];
        let wanted = ["api.internal", "api", "kops-controller.internal"];
        assert_eq!(
            texts(names),
            wanted.map(|name| format!("{name}.{}", full.name))
        );
        let queue = crate::queue_arn(&full);
        assert_eq!(texts(&of("sqs:ReceiveMessage")["Resource"]), [queue]);
    }

    #[test]
    fn services_of_other_partitions_have_other_addresses() {
        for (partition, suffix) in [
            ("aws", "amazonaws.com"),
            ("aws-us-gov", "amazonaws.com"),
            ("aws-cn", "amazonaws.com.cn"),
            ("aws-eusc", "amazonaws.eu"),
        ] {
            let placement = Placement {
                account: "123456789012".to_owned(),
                partition: partition.to_owned(),
                region: "r".to_owned(),
            };
            assert_eq!(endpoint_suffix(&placement), suffix);
        }
    }
}
