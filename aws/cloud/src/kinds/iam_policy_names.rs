//! Which policies a role has: all that AWS lists, whoever wrote them.

use crate::world::AwsWorld;
use aws_client::failure::Classify;
use engine::Failure;

/// Names of a role's inline policies.
pub(super) async fn inline_policy_names(
    world: &AwsWorld,
    role: &str,
) -> Result<Vec<String>, Failure> {
    let call = world.clients.iam.list_role_policies().role_name(role);
    let found: Result<Vec<_>, _> = call.into_paginator().items().send().collect().await;
    found.classify_call("iam:ListRolePolicies")
}

/// ARNs of managed policies that are attached to a role.
pub(super) async fn attached_policy_arns(
    world: &AwsWorld,
    role: &str,
) -> Result<Vec<String>, Failure> {
    let call = world.clients.iam.list_attached_role_policies();
    let pages = call.role_name(role).into_paginator();
    let found: Result<Vec<_>, _> = pages.items().send().collect().await;
    let found = found.classify_call("iam:ListAttachedRolePolicies")?;
    Ok(found.into_iter().filter_map(|one| one.policy_arn).collect())
}

/// Every policy of a role, as AWS calls it.
pub(super) async fn names_of_policies(
    world: &AwsWorld,
    role: &str,
) -> Result<Vec<String>, Failure> {
    let (inline, attached) = futures::try_join!(
        inline_policy_names(world, role),
        attached_policy_arns(world, role)
    )?;
    Ok([inline, attached].concat())
}
