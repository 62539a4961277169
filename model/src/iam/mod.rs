//! IAM policy documents of machines: what each role may do, no more. Conditions on the cluster's tag keep a
//! machine from touching what is not its cluster's.

mod control_plane;
mod document;
mod state;

pub use document::VERSION;

use crate::full::{FullSpec, Placement, Role};
use document::{Policy, Statement};
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

/// The domain of AWS' services.
fn dns_suffix(placement: &Placement) -> &'static str {
    match placement.partition.as_str() {
        "aws-cn" => "amazonaws.com.cn",
        _ => "amazonaws.com",
    }
}
