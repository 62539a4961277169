//! Whether the caller may do what a plan needs, as IAM says without doing it
//! (<https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html>).

use crate::CloudClients;
use aws_client::caller_identity;
use aws_client::failure::{Classify, local_failure};
use aws_sdk_iam::types::{
    ContextEntry, ContextKeyTypeEnum, EvaluationResult, PolicyEvaluationDecisionType,
    ResourceSpecificResult,
};
use engine::{Class, Failure};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

const CALL: &str = "iam:SimulatePrincipalPolicy";

/// Actions asked about at once: the size of a request is limited.
const ACTIONS_AT_ONCE: usize = 50;

/// What IAM says of actions that it does not evaluate in one call, such as `iam:PassRole` among others (`InvalidInput`).
const ASK_APART: &str = "require different authorization information";

/// Services of which the partition `aws` has one endpoint: `aws:RequestedRegion` is that of the endpoint, whatever the caller means
/// (<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html#condition-keys-requestedregion>).
const GLOBAL_SERVICES: [&str; 2] = ["iam:", "route53:"];
const GLOBAL_REGION: &str = "us-east-1";

/// What keeps the caller from an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// A statement with the effect `Deny`.
    Explicit,
    /// No statement allows it.
    Silent,
    /// The permissions boundary does not allow it.
    Boundary,
    /// A policy of the organization.
    Organization,
    /// Nothing that could be evaluated: a condition may.
    Condition,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Explicit => "a policy denies it",
            Self::Silent => "no policy allows it",
            Self::Boundary => "the permissions boundary does not allow it",
            Self::Organization => "a policy of the organization does not allow it",
            Self::Condition => "a condition may deny it",
        })
    }
}

/// An action that the caller's policies do not allow, or not for sure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeniedAction {
    pub action: String,
    /// An ARN, or `*`.
    pub resource: String,
    pub denial: Denial,
    /// Condition keys of policies whose values are not known before the call: with them it may be allowed.
    pub missing_keys: Vec<String>,
}

/// What IAM says of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerPermissions {
    /// The user or role whose policies were asked about.
    pub principal: String,
    pub denied: Vec<DeniedAction>,
}

/// Asks IAM about these actions, by resource. Some callers cannot be asked about: the failure says which.
pub async fn simulate_actions(
    clients: &CloudClients,
    needed: &BTreeMap<String, BTreeSet<&'static str>>,
) -> Result<CallerPermissions, Failure> {
    let caller = caller_identity(clients.shared_clients()).await?;
    let principal = policy_source(clients, &caller.arn).await?;
    let mut denied = Vec::new();
    for (resource, actions) in needed {
        let in_one_region = |action: &&str| {
            let mut services = GLOBAL_SERVICES.iter();
            caller.arn.starts_with("arn:aws:") && services.any(|one| action.starts_with(*one))
        };
        let (global, regional): (Vec<&str>, Vec<&str>) =
            actions.iter().copied().partition(in_one_region);
        let global = global
            .chunks(ACTIONS_AT_ONCE)
            .map(|some| (GLOBAL_REGION, some));
        let regional = regional.chunks(ACTIONS_AT_ONCE);
        let regional = regional.map(|some| (clients.region(), some));
        let mut waiting: Vec<(&str, &[&str])> = regional.chain(global).rev().collect();
        while let Some((region, some)) = waiting.pop() {
            match simulate(clients, &principal, resource, region, some).await {
                Ok(found) => denied.extend(found),
                Err(failure) if some.len() > 1 && failure.message.contains(ASK_APART) => {
                    let (first, second) = some.split_at(some.len() / 2);
                    waiting.extend([(region, second), (region, first)]);
                }
                Err(failure) => return Err(failure),
            }
        }
    }
    Ok(CallerPermissions { principal, denied })
}

/// The user or role whose policies the caller has. A session of a role names it without its path.
async fn policy_source(clients: &CloudClients, caller: &str) -> Result<String, Failure> {
    let unknown = |why: &str| local_failure(Class::Invalid, CALL, format!("{caller} is {why}"));
    let resource = caller.splitn(6, ':').nth(5).unwrap_or_default();
    let (kind, name) = resource.split_once('/').unwrap_or((resource, ""));
    match kind {
        "user" if caller.contains(":iam:") => Ok(caller.to_owned()),
        "assumed-role" => {
            const GET: &str = "iam:GetRole";
            let role = name.split('/').next().unwrap_or_default();
            let answer = clients.iam.get_role().role_name(role).send().await;
            let role = answer.classify_call(GET)?.role;
            role.map(|role| role.arn)
                .ok_or_else(|| local_failure(Class::Unknown, GET, "the answer lacks the role"))
        }
        "root" => Err(unknown(
            "the account itself, whose policies IAM does not evaluate",
        )),
        _ => Err(unknown(
            "neither user nor role, whose policies IAM evaluates",
        )),
    }
}

async fn simulate(
    clients: &CloudClients,
    principal: &str,
    resource: &str,
    region: &str,
    actions: &[&str],
) -> Result<Vec<DeniedAction>, Failure> {
    let actions = actions.iter().map(|action| (*action).to_owned()).collect();
    let text = |key: &str, value: &str| {
        let entry = ContextEntry::builder().context_key_name(key);
        let entry = entry.context_key_type(ContextKeyTypeEnum::String);
        entry.context_key_values(value).build()
    };
    let call = clients
        .iam
        .simulate_principal_policy()
        .policy_source_arn(principal)
        .set_action_names(Some(actions))
        .resource_arns(resource)
        .context_entries(text("aws:RequestedRegion", region))
        // Every role that kctl passes is for instances.
        .context_entries(text("iam:PassedToService", "ec2.amazonaws.com"));
    let results: Result<Vec<EvaluationResult>, _> =
        call.into_paginator().items().send().collect().await;
    let results = results.classify_call(CALL)?;
    let denied = results.iter();
    Ok(denied
        .filter_map(|result| denied_action(result, resource))
        .collect())
}

/// What IAM does not allow, or allows only as long as it does not know the value of a key: a denial may ask for it.
fn denied_action(result: &EvaluationResult, resource: &str) -> Option<DeniedAction> {
    let missing_keys = missing_keys(result);
    let by_condition = (!missing_keys.is_empty()).then_some(Denial::Condition);
    Some(DeniedAction {
        action: result.eval_action_name().to_owned(),
        resource: resource.to_owned(),
        denial: denial_of(result).or(by_condition)?,
        missing_keys,
    })
}

fn denial_of(result: &EvaluationResult) -> Option<Denial> {
    if result.eval_decision() == &PolicyEvaluationDecisionType::Allowed {
        return None;
    }
    let organization = result.organizations_decision_detail();
    let boundary = result.permissions_boundary_decision_detail();
    let by_organization = organization.is_some_and(|detail| !detail.allowed_by_organizations());
    let by_boundary = boundary.is_some_and(|detail| !detail.allowed_by_permissions_boundary());
    Some(match result.eval_decision() {
        _ if by_organization => Denial::Organization,
        PolicyEvaluationDecisionType::ExplicitDeny => Denial::Explicit,
        _ if by_boundary => Denial::Boundary,
        _ => Denial::Silent,
    })
}

/// Of all resources together, or of each.
fn missing_keys(result: &EvaluationResult) -> Vec<String> {
    let of_each = result.resource_specific_results().iter();
    let of_each = of_each.flat_map(ResourceSpecificResult::missing_context_values);
    let all = result.missing_context_values().iter().chain(of_each);
    let all: BTreeSet<&String> = all.collect();
    all.into_iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_allowed_only_if_no_condition_is_open() {
        use PolicyEvaluationDecisionType::{Allowed, ExplicitDeny, ImplicitDeny};
        for (decision, key, expected) in [
            (Allowed, None, None),
            (Allowed, Some("ec2:Vpc"), Some(Denial::Condition)),
            (ImplicitDeny, Some("ec2:Vpc"), Some(Denial::Silent)),
            (ExplicitDeny, None, Some(Denial::Explicit)),
        ] {
            let keys: Vec<String> = key.into_iter().map(str::to_owned).collect();
            let result = EvaluationResult::builder()
                .eval_action_name("ec2:CreateSubnet")
                .eval_decision(decision)
                .set_missing_context_values(Some(keys.clone()))
                .build()
                .unwrap();
            let denied = denied_action(&result, "*");
            let found = denied.map(|denied| (denied.denial, denied.missing_keys));
            assert_eq!(found, expected.map(|denial| (denial, keys)));
        }
    }
}
