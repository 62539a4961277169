//! An IAM role.

use super::ec2::is_owned;
use super::iam_documents::{
    POLICIES_TAG, as_wanted, name_of, parse_document, read_tags, write_tags,
};
use super::iam_policy_names::names_of_policies;
use super::{
    Found, Have, Verbs, created_ready, desired_of_kind, not_ours, observed_item, rfc3339_time,
};
use crate::names::TagChanges;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, none_if_absent, require_answer};
use aws_sdk_iam::types;
use cloud::{Cloud, IamRole, Tags};
use engine::{Class, Failure, Observed, Put, Refs, Removed};
use futures::future::try_join_all;
use serde_json::Value;

const GET: &str = "iam:GetRole";
const CREATE: &str = "iam:CreateRole";

/// The most that `ListRoles` takes as `MaxItems` (its API reference).
const LISTED_ROLES: i32 = 1000;

/// Those of the cluster's possible roles that exist and are the cluster's, with those that trust these issuers.
pub(crate) async fn fetch(
    world: &AwsWorld,
    issuers: &[String],
) -> Result<Vec<types::Role>, Failure> {
    let of_pods = names_of_pod_roles(world, issuers).await?;
    let of_instances = &world.scope.roles;
    let roles = of_instances.iter().chain(&of_pods);
    let found = try_join_all(roles.map(|name| fetch_one(world, name))).await?;
    let found = found.into_iter().flatten();
    Ok(found
        .filter(|role| is_owned(world, &read_tags(role.tags())))
        .collect())
}

/// True of a role that pods assume: no instance profile hands it out.
pub(crate) fn is_of_pods(world: &AwsWorld, role: &types::Role) -> bool {
    !world
        .scope
        .roles
        .iter()
        .any(|name| name == role.role_name())
}

/// Names of the roles that trust one of these issuers. AWS lists the trust policies of all roles, but not their tags (API reference,
/// `ListRoles`); a cluster without such an issuer has no such roles.
async fn names_of_pod_roles(world: &AwsWorld, issuers: &[String]) -> Result<Vec<String>, Failure> {
    let providers: Vec<String> = issuers
        .iter()
        .map(|issuer| world.scope.oidc_provider_arn(issuer))
        .collect();
    if providers.is_empty() {
        return Ok(Vec::new());
    }
    let call = world.clients.iam.list_roles().max_items(LISTED_ROLES);
    let pages = call.into_paginator().items().send();
    let all: Result<Vec<_>, _> = pages.collect().await;
    let all = all.classify_call("iam:ListRoles")?.into_iter();
    let trusting = all.filter(|role| {
        let document = parse_document(role.assume_role_policy_document().unwrap_or_default());
        let statements = document.get("Statement").and_then(Value::as_array);
        let mut trusted = statements
            .into_iter()
            .flatten()
            .filter_map(|statement| statement.pointer("/Principal/Federated"));
        trusted.any(|trusted| providers.iter().any(|provider| trusted == provider))
    });
    Ok(trusting.map(|role| role.role_name).collect())
}

async fn fetch_one(world: &AwsWorld, name: &str) -> Result<Option<types::Role>, Failure> {
    let answer = world.clients.iam.get_role().role_name(name).send().await;
    Ok(none_if_absent(answer.classify_call(GET))?.and_then(|answer| answer.role))
}

/// True if the role says that it has policies beside its own.
pub(crate) fn has_more_policies(raw: &types::Role) -> bool {
    raw.tags().iter().any(|tag| tag.key() == POLICIES_TAG)
}

pub(crate) fn observe(world: &AwsWorld, raw: &types::Role) -> Observed<Cloud> {
    let name = raw.role_name();
    let wanted = desired_of_kind::<IamRole>(world).find(|one| one.role_name == name);
    let document = parse_document(raw.assume_role_policy_document().unwrap_or_default());
    let boundary = raw.permissions_boundary();
    let mut tags = read_tags(raw.tags());
    tags.remove(POLICIES_TAG);
    let role = IamRole {
        role_name: name.to_owned(),
        assume_role_policy_document: as_wanted(
            document,
            wanted.map(|one| &one.assume_role_policy_document),
        ),
        permissions_boundary: boundary
            .and_then(|one| one.permissions_boundary_arn().map(ToOwned::to_owned)),
        tags,
    };
    Observed {
        created: rfc3339_time(Some(raw.create_date())),
        ..observed_item(role, raw.arn())
    }
}

impl Verbs for IamRole {
    async fn find(world: &AwsWorld, want: &Self, _refs: &Refs) -> Found {
        match fetch_one(world, &want.role_name).await? {
            Some(raw) if !is_owned(world, &read_tags(raw.tags())) => {
                let what = format!("the IAM role {}", want.role_name);
                Err(not_ours(world, GET, &what))
            }
            found => Ok(found.map(|raw| observe(world, &raw))),
        }
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        _refs: &Refs,
    ) -> Result<Put, Failure> {
        match have {
            Some(have) => {
                update(world, have.resource, want).await?;
                Ok(created_ready(have.physical))
            }
            None => {
                let call = world
                    .clients
                    .iam
                    .create_role()
                    .role_name(&want.role_name)
                    .assume_role_policy_document(want.assume_role_policy_document.to_string())
                    .set_permissions_boundary(want.permissions_boundary.clone())
                    .set_tags(Some(write_tags(&want.tags)));
                let role = call.send().await.classify_creation(CREATE)?.role;
                require_answer(role, CREATE).map(|role| created_ready(role.arn))
            }
        }
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let role = name_of(have.physical);
        let call = world.clients.iam.delete_role().role_name(role);
        match call.send().await.classify_call("iam:DeleteRole") {
            Ok(_) => Ok(Removed::Done),
            Err(failure) => Err(with_policies(world, role, failure).await?),
        }
    }
}

/// Names the policies that hold the role: ours are on their way, those of others stay.
async fn with_policies(
    world: &AwsWorld,
    role: &str,
    mut failure: Failure,
) -> Result<Failure, Failure> {
    if failure.class == Class::Blocked && world.asks_who_blocks(role) {
        let policies = names_of_policies(world, role).await?;
        if !policies.is_empty() {
            let what = format!(" In the way: {}", policies.join(", "));
            failure.message.push_str(&what);
        }
    }
    Ok(failure)
}

async fn update(world: &AwsWorld, have: &IamRole, want: &IamRole) -> Result<(), Failure> {
    let (iam, name) = (&world.clients.iam, &want.role_name);
    if have.assume_role_policy_document != want.assume_role_policy_document {
        let document = want.assume_role_policy_document.to_string();
        let call = iam.update_assume_role_policy().role_name(name);
        let done = call.policy_document(document).send().await;
        done.classify_call("iam:UpdateAssumeRolePolicy")?;
    }
    if have.permissions_boundary != want.permissions_boundary {
        if let Some(boundary) = &want.permissions_boundary {
            let call = iam.put_role_permissions_boundary().role_name(name);
            let done = call.permissions_boundary(boundary).send().await;
            done.classify_call("iam:PutRolePermissionsBoundary")?;
        } else {
            let call = iam.delete_role_permissions_boundary().role_name(name);
            let done = call.send().await;
            done.classify_call("iam:DeleteRolePermissionsBoundary")?;
        }
    }
    retag(
        world,
        name,
        &TagChanges::tag_changes_between(&have.tags, &want.tags),
    )
    .await
}

async fn retag(world: &AwsWorld, role: &str, changes: &TagChanges) -> Result<(), Failure> {
    if !changes.set.is_empty() {
        let call = world.clients.iam.tag_role().role_name(role);
        let done = call.set_tags(Some(write_tags(&changes.set))).send().await;
        done.classify_call("iam:TagRole")?;
    }
    if !changes.unset.is_empty() {
        let call = world.clients.iam.untag_role().role_name(role);
        let done = call.set_tag_keys(Some(changes.unset.clone())).send().await;
        done.classify_call("iam:UntagRole")?;
    }
    Ok(())
}

/// Says on the role whether it has policies beside its own.
pub(super) async fn set_policy_mark(
    world: &AwsWorld,
    role: &str,
    more: bool,
) -> Result<(), Failure> {
    let mut changes = TagChanges {
        set: Tags::new(),
        unset: Vec::new(),
    };
    if more {
        changes
            .set
            .insert(POLICIES_TAG.to_owned(), "more".to_owned());
    } else {
        changes.unset.push(POLICIES_TAG.to_owned());
    }
    retag(world, role, &changes).await
}
