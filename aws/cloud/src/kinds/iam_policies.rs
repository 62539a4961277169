//! The policies of a role: its own inline policy, which has its name, further inline ones, and managed ones
//! that are attached to it.

use super::iam_documents::{as_wanted, name_of, parse_document};
use super::iam_policy_names::{attached_policy_arns, inline_policy_names, names_of_policies};
use super::iam_role::{has_more_policies, set_policy_mark};
use super::{
    Found, Have, Verbs, after_effect, created_ready, desired_of_kind, observed_item, physical,
};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, none_if_absent};
use aws_sdk_iam::types;
use cloud::{Cloud, IamRole, IamRolePolicy, IamRolePolicyAttachment, Kind};
use engine::{Failure, Observed, Put, Ref, Refs, Removed};
use futures::future::try_join_all;
use serde_json::Value;

/// Between a role and a policy's name or ARN in a physical id; no role's name has it.
const BETWEEN: char = '/';

/// The policies of one role.
pub(crate) struct Raw {
    /// ARN of the role.
    role: String,
    inline: Vec<(String, Value)>,
    /// ARNs.
    attached: Vec<String>,
}

/// The policies of these roles. Those beside a role's own are listed only where the spec wants some, the role
/// says that it has some, or everything has to be found.
pub(crate) async fn fetch(world: &AwsWorld, roles: &[types::Role]) -> Result<Vec<Raw>, Failure> {
    let one = |raw| async move {
        let role: &types::Role = raw;
        let name = role.role_name();
        let more = world.scope.refresh
            || world.scope.is_deletion()
            || has_more_policies(role)
            || wants_more(world, name);
        let (names, attached) = if more {
            futures::try_join!(
                inline_policy_names(world, name),
                attached_policy_arns(world, name)
            )?
        } else {
            (vec![name.to_owned()], Vec::new())
        };
        let documents = names
            .into_iter()
            .map(|policy| read_document(world, name, policy));
        let documents = try_join_all(documents).await?;
        Ok(Raw {
            role: role.arn().to_owned(),
            inline: documents.into_iter().flatten().collect(),
            attached,
        })
    };
    try_join_all(roles.iter().map(one)).await
}

fn wants_more(world: &AwsWorld, role: &str) -> bool {
    let of = |reference: &Ref| matches!(reference, Ref::Own { name, .. } | Ref::Given(name) if name == role);
    let attached = desired_of_kind::<IamRolePolicyAttachment>(world).any(|one| of(&one.role_name));
    let mut inline = desired_of_kind::<IamRolePolicy>(world);
    attached || inline.any(|one| of(&one.role_name) && one.policy_name != role)
}

async fn read_document(
    world: &AwsWorld,
    role: &str,
    policy: String,
) -> Result<Option<(String, Value)>, Failure> {
    let call = world.clients.iam.get_role_policy().role_name(role);
    let answer = call.policy_name(&policy).send().await;
    let answer = none_if_absent(answer.classify_call("iam:GetRolePolicy"))?;
    Ok(answer.map(|answer| (policy, parse_document(answer.policy_document()))))
}

pub(crate) fn observe(world: &AwsWorld, raw: &Raw, names: &Names) -> Vec<Observed<Cloud>> {
    let role = names.reference::<IamRole>(&raw.role);
    let name = name_of(&raw.role);
    let inline = raw.inline.iter().map(|(policy_name, document)| {
        let wanted =
            desired_of_kind::<IamRolePolicy>(world).find(|one| one.policy_name == *policy_name);
        let policy = IamRolePolicy {
            policy_name: policy_name.clone(),
            role_name: role.clone(),
            policy_document: as_wanted(document.clone(), wanted.map(|one| &one.policy_document)),
        };
        observed_item(policy, physical_id(name, policy_name))
    });
    let attached = raw.attached.iter().map(|arn| {
        let attachment = IamRolePolicyAttachment {
            role_name: role.clone(),
            policy_arn: arn.clone(),
        };
        observed_item(attachment, physical_id(name, arn))
    });
    inline.chain(attached).collect()
}

fn physical_id(role: &str, policy: &str) -> String {
    format!("{role}{BETWEEN}{policy}")
}

impl Verbs for IamRolePolicy {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        let role = physical(refs, &want.role_name, "iam:GetRolePolicy")?;
        let found = read_document(world, name_of(&role), want.policy_name.clone()).await?;
        let raw = Raw {
            role,
            inline: found.into_iter().collect(),
            attached: Vec::new(),
        };
        let names = Names::for_references(&want.refs(), refs);
        Ok(observe(world, &raw, &names).into_iter().next())
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        _have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        const CALL: &str = "iam:PutRolePolicy";
        let role = physical(refs, &want.role_name, CALL)?;
        let role = name_of(&role);
        if want.policy_name != role {
            set_policy_mark(world, role, true).await?;
        }
        let call = world.clients.iam.put_role_policy().role_name(role);
        let call = call.policy_name(&want.policy_name);
        let document = want.policy_document.to_string();
        let done = call.policy_document(document).send().await;
        done.classify_creation(CALL)?;
        Ok(created_ready(physical_id(role, &want.policy_name)))
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let (role, policy) = split_physical_id(have.physical);
        let call = world.clients.iam.delete_role_policy().role_name(role);
        let done = call.policy_name(policy).send().await;
        done.classify_call("iam:DeleteRolePolicy")?;
        if policy != role {
            after_effect(clear_policy_mark(world, role).await)?;
        }
        Ok(Removed::Done)
    }
}

impl Verbs for IamRolePolicyAttachment {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        let role = physical(refs, &want.role_name, "iam:ListAttachedRolePolicies")?;
        let mut attached =
            none_if_absent(attached_policy_arns(world, name_of(&role)).await)?.unwrap_or_default();
        attached.retain(|arn| *arn == want.policy_arn);
        let raw = Raw {
            role,
            inline: Vec::new(),
            attached,
        };
        let names = Names::for_references(&want.refs(), refs);
        Ok(observe(world, &raw, &names).into_iter().next())
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        _have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        const CALL: &str = "iam:AttachRolePolicy";
        let role = physical(refs, &want.role_name, CALL)?;
        let role = name_of(&role);
        set_policy_mark(world, role, true).await?;
        let call = world.clients.iam.attach_role_policy().role_name(role);
        let done = call.policy_arn(&want.policy_arn).send().await;
        done.classify_creation(CALL)?;
        Ok(created_ready(physical_id(role, &want.policy_arn)))
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let (role, policy) = split_physical_id(have.physical);
        let call = world.clients.iam.detach_role_policy().role_name(role);
        let done = call.policy_arn(policy).send().await;
        done.classify_call("iam:DetachRolePolicy")?;
        after_effect(clear_policy_mark(world, role).await)?;
        Ok(Removed::Done)
    }
}

fn split_physical_id(physical: &str) -> (&str, &str) {
    physical.split_once(BETWEEN).unwrap_or((physical, ""))
}

/// After a policy beside the role's own is gone: if it was the last, the role need not say so any more.
/// A cluster that is being deleted loses the role itself.
async fn clear_policy_mark(world: &AwsWorld, role: &str) -> Result<(), Failure> {
    if world.scope.is_deletion() {
        return Ok(());
    }
    let left = names_of_policies(world, role).await?;
    if left.iter().all(|policy| policy == role) {
        set_policy_mark(world, role, false).await?;
    }
    Ok(())
}
