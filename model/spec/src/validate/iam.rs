//! IAM: boundaries and further policies of the roles.

use serde_json::Value;

use crate::api::cluster::ClusterSpec;
use crate::read::{Problem, path};

use super::text::{check_one_of, is_arn};

/// Roles as the policy fields name them; the newer name of `master` too.
const ROLES: &[&str] = &["master", "node", "bastion", "control-plane", "apiserver"];

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    if let Some(arn) = spec
        .iam
        .as_ref()
        .and_then(|iam| iam.permissions_boundary.as_deref())
        && !is_arn("iam", arn)
    {
        problems.push(not_a_policy("spec.iam.permissionsBoundary".to_owned(), arn));
    }
    for (role, arns) in &spec.external_policies {
        let at = path::field_path("spec.externalPolicies", role);
        check_one_of(&at, role, ROLES, problems);
        for (index, arn) in arns
            .iter()
            .enumerate()
            .filter(|(_, arn)| !is_arn("iam", arn))
        {
            problems.push(not_a_policy(path::element_path(&at, index), arn));
        }
    }
    for (role, text) in &spec.additional_policies {
        let at = path::field_path("spec.additionalPolicies", role);
        check_one_of(&at, role, ROLES, problems);
        check_statements(&at, text, problems);
    }
}

pub(super) fn not_a_policy(path: String, arn: &str) -> Problem {
    Problem::error(path, format!("\"{arn}\" is not the ARN of a policy"))
        .hint("write arn:aws:iam::ACCOUNT:policy/NAME")
}

/// A JSON list of statements, as kOps takes it.
pub(super) fn check_statements(path: &str, text: &str, problems: &mut Vec<Problem>) {
    let hint = "write a JSON list of statements: [{\"Effect\": \"Allow\", \"Action\": [...], \"Resource\": [...]}]";
    let statements = match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(statements)) => statements,
        Ok(_) => {
            return problems
                .push(Problem::error(path, "the policy is JSON, but no list").hint(hint));
        }
        Err(error) => {
            return problems
                .push(Problem::error(path, format!("the policy is not JSON: {error}")).hint(hint));
        }
    };
    for (index, statement) in statements.iter().enumerate() {
        let has = |names: [&str; 2]| names.iter().any(|name| statement.get(name).is_some());
        let effect = statement.get("Effect").and_then(Value::as_str);
        if !matches!(effect, Some("Allow" | "Deny")) {
            problems.push(
                Problem::error(
                    path,
                    format!("statement {index} has no Effect of Allow or Deny"),
                )
                .hint(hint),
            );
        }
        if !has(["Action", "NotAction"]) || !has(["Resource", "NotResource"]) {
            problems.push(
                Problem::error(
                    path,
                    format!("statement {index} lacks an Action or a Resource"),
                )
                .hint(hint),
            );
        }
    }
}
