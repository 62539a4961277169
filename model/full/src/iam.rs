//! IAM policies of instances, with least privilege for each role. Conditions on the cluster's tag keep instances
//! from changing resources of other clusters.

mod control_plane;
mod document;
mod state;

pub(crate) use control_plane::{kms_statements, published_names};
pub(crate) use document::Statement;
pub use document::VERSION;

use crate::addons::{permissions_of_agents, permissions_of_instances};
use crate::{FullSpec, Placement};
use document::Policy;
use node::config::Role;
use serde_json::{Value, json};

/// Condition keys of the cluster's tag: on the object that an action changes, and in the request that creates one.
pub(crate) const RESOURCE_CLUSTER: &str = "aws:ResourceTag/KubernetesCluster";
pub(crate) const REQUEST_CLUSTER: &str = "aws:RequestTag/KubernetesCluster";

/// The role's key in the maps of the spec.
pub fn role_key(role: Role) -> &'static str {
    match role {
        Role::ControlPlane => "control-plane",
        Role::Node => "node",
        Role::Bastion => "bastion",
    }
}

/// The trust policy of instance roles: EC2 may assume them.
pub fn trust_policy(placement: &Placement) -> Value {
    json!({
        "Statement": [{
            "Action": "sts:AssumeRole",
            "Effect": "Allow",
            "Principal": {"Service": format!("ec2.{}", dns_suffix(placement))},
        }],
        "Version": VERSION,
    })
}

/// ARN of the OIDC provider of an issuer: AWS names it after the issuer's URL.
pub fn oidc_provider_arn(placement: &Placement, issuer: &str) -> String {
    let provider = oidc_provider(issuer);
    format!(
        "arn:{}:iam::{}:oidc-provider/{provider}",
        placement.partition, placement.account
    )
}

/// The issuer as AWS writes it in ARNs and condition keys: without the scheme.
fn oidc_provider(issuer: &str) -> &str {
    issuer.strip_prefix("https://").unwrap_or(issuer)
}

/// The trust policy of a service account's role: pods with its tokens may assume it.
pub fn service_account_trust_policy(
    placement: &Placement,
    issuer: &str,
    namespace: &str,
    service_account: &str,
) -> Value {
    let operator = if namespace.contains('*') {
        "StringLike"
    } else {
        "StringEquals"
    };
    let key = format!("{}:sub", oidc_provider(issuer));
    json!({
        "Statement": [{
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Condition": {operator: {key: format!("system:serviceaccount:{namespace}:{service_account}")}},
            "Effect": "Allow",
            "Principal": {"Federated": oidc_provider_arn(placement, issuer)},
        }],
        "Version": VERSION,
    })
}

/// The policy with these statements of kctl's.
pub(crate) fn policy_of(statements: Vec<Statement>) -> Value {
    Policy::new(statements).to_json()
}

/// The policy with statements of the user's, as they are.
pub(crate) fn policy_of_user(statements: &Value) -> Value {
    json!({"Statement": statements, "Version": VERSION})
}

/// The policy of a role; `None`: the role needs no permissions.
pub fn role_policy(full: &FullSpec, role: Role) -> Option<Value> {
    let statements = match role {
        Role::ControlPlane => control_plane::control_plane_statements(full),
        Role::Node => node_statements(full),
        Role::Bastion => Vec::new(),
    };
    (!statements.is_empty()).then(|| policy_of(statements))
}

/// The policy of `spec.additionalPolicies`, as the user wrote its statements.
pub fn additional_policy(full: &FullSpec, role: Role) -> Option<Value> {
    let statements = full.iam.additional_policies.get(role_key(role))?;
    Some(policy_of_user(statements))
}

fn node_statements(full: &FullSpec) -> Vec<Statement> {
    let mut statements = state::node_state_access(full);
    // Also without a hook: an instance of the pool may enter service after a hook was added.
    if full.groups.iter().any(|one| one.warm_pool.is_some()) {
        statements.push(
            Statement::allow(["autoscaling:CompleteLifecycleAction"])
                .on_all()
                .when("StringEquals", RESOURCE_CLUSTER, full.name.as_str()),
        );
    }
    if full.iam.allow_container_registry {
        statements.push(Statement::allow(REGISTRY).on_all());
    }
    statements.extend(permissions_of_instances(full, Role::Node));
    statements.extend(permissions_of_agents(full));
    statements
}

/// Actions that read images from ECR.
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

/// The domain of AWS service endpoints, which `kms:ViaService` has: `dnsSuffix` of the SDK's `partitions.json`.
pub fn endpoint_suffix(partition: &str) -> &'static str {
    match partition {
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

    fn string_list(value: &Value) -> Vec<String> {
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
        for shape in [
            spec::minimal_spec,
            spec::ha_spec,
            spec::private_spec,
            spec::shared_vpc_spec,
        ] {
            let full = shape();
            let policy = role_policy(&full, Role::ControlPlane).unwrap();
            for statement in policy["Statement"].as_array().unwrap() {
                let everywhere = string_list(&statement["Resource"]) == ["*"];
                if !everywhere || !statement["Condition"].is_null() {
                    continue;
                }
                for action in string_list(&statement["Action"]) {
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
    fn only_buckets_of_the_state_stores_owner_are_used() {
        for mut full in [spec::minimal_spec(), spec::ha_spec(), spec::private_spec()] {
            full.state.owner = Some("210987654321".to_owned());
            if let Some(etcd) = full.etcd.first_mut() {
                etcd.backups.store = "s3://elsewhere/x".to_owned();
            }
            let policies = [Role::ControlPlane, Role::Node].map(|role| role_policy(&full, role));
            let statements = policies.iter().flatten();
            let statements = statements.flat_map(|policy| policy["Statement"].as_array().unwrap());
            let mut count = 0;
            for statement in statements {
                let actions = string_list(&statement["Action"]);
                if actions.iter().any(|action| action.starts_with("s3:")) {
                    let owner = &statement["Condition"]["StringEquals"]["aws:ResourceAccount"];
                    assert_eq!(owner, "210987654321", "{statement}");
                    count += 1;
                }
            }
            assert!(count >= 5, "{count}");
        }
    }

    #[test]
    fn only_the_clusters_names_and_messages_are_its_own() {
        let full = spec::minimal_spec();
        let policy = role_policy(&full, Role::ControlPlane).unwrap();
        let of = |action: &str| -> Value {
            let all = policy["Statement"].as_array().unwrap();
            let has = |one: &&Value| {
                string_list(&one["Action"])
                    .iter()
                    .any(|other| other == action)
            };
            all.iter().find(has).cloned().unwrap_or_default()
        };
        let conditions = &of("route53:ChangeResourceRecordSets")["Condition"];
        let allowed = |what: &str| {
            let key = format!("route53:ChangeResourceRecordSets{what}");
            string_list(&conditions["ForAllValues:StringEquals"][key])
        };
        let wanted = [
            "api.internal",
            "api",
            "etcd-a.internal",
            "etcd-events-a.internal",
            "kops-controller.internal",
        ];
        assert_eq!(
            allowed("NormalizedRecordNames"),
            wanted.map(|name| format!("{name}.{}", full.name))
        );
        assert_eq!(allowed("RecordTypes"), ["A"]);
        assert_eq!(allowed("Actions"), ["UPSERT"]);
        let queue = crate::queue_arn(&full);
        assert_eq!(string_list(&of("sqs:ReceiveMessage")["Resource"]), [queue]);
    }

    #[test]
    fn services_of_other_partitions_have_other_addresses() {
        for (partition, suffix) in [
            ("aws", "amazonaws.com"),
            ("aws-us-gov", "amazonaws.com"),
            ("aws-cn", "amazonaws.com.cn"),
            ("aws-eusc", "amazonaws.eu"),
        ] {
            assert_eq!(endpoint_suffix(partition), suffix);
        }
    }
}
