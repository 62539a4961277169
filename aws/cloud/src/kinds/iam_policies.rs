//! The policies of a role: its own inline policy, which has its name, further inline ones, and managed ones
//! that are attached to it.

use super::iam_documents::{as_wanted, name_of, read};
use super::iam_policy_names::{attached, inline, names_of_policies};
use super::iam_role::{has_more_policies, mark};
use super::{Have, Verbs, after_effect, expected, item, made, physical};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, absent};
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
    /// Name and document.
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
            || world.scope.deleting()
            || has_more_policies(role)
            || wants_more(world, name);
        let (names, attached) = if more {
            futures::try_join!(inline(world, name), attached(world, name))?
        } else {
            (vec![name.to_owned()], Vec::new())
        };
        let documents = names
            .into_iter()
            .map(|policy| document(world, name, policy));
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
    let attached = expected::<IamRolePolicyAttachment>(world).any(|one| of(&one.role_name));
    let mut inline = expected::<IamRolePolicy>(world);
    attached || inline.any(|one| of(&one.role_name) && one.policy_name != role)
}

async fn document(
    world: &AwsWorld,
    role: &str,
    policy: String,
) -> Result<Option<(String, Value)>, Failure> {
    let call = world.clients.iam.get_role_policy().role_name(role);
    let answer = call.policy_name(&policy).send().await;
    let answer = absent(answer.called("iam:GetRolePolicy"))?;
    Ok(answer.map(|answer| (policy, read(answer.policy_document()))))
}

pub(crate) fn observe(world: &AwsWorld, raw: &Raw, names: &Names) -> Vec<Observed<Cloud>> {
    let role = names.reference::<IamRole>(&raw.role);
    let name = name_of(&raw.role);
    let inline = raw.inline.iter().map(|(policy_name, document)| {
        let wanted = expected::<IamRolePolicy>(world).find(|one| one.policy_name == *policy_name);
        let policy = IamRolePolicy {
            policy_name: policy_name.clone(),
            role_name: role.clone(),
            policy_document: as_wanted(document.clone(), wanted.map(|one| &one.policy_document)),
        };
        item(policy, id(name, policy_name))
    });
    let attached = raw.attached.iter().map(|arn| {
        let attachment = IamRolePolicyAttachment {
            role_name: role.clone(),
            policy_arn: arn.clone(),
        };
        item(attachment, id(name, arn))
    });
    inline.chain(attached).collect()
}

fn id(role: &str, policy: &str) -> String {
    format!("{role}{BETWEEN}{policy}")
}

impl Verbs for IamRolePolicy {
    async fn find(
        world: &AwsWorld,
        want: &Self,
        refs: &Refs,
    ) -> Result<Option<Observed<Cloud>>, Failure> {
        let role = physical(refs, &want.role_name, "iam:GetRolePolicy")?;
        let found = document(world, name_of(&role), want.policy_name.clone()).await?;
        let raw = Raw {
            role,
            inline: found.into_iter().collect(),
            attached: Vec::new(),
        };
        let names = Names::around(&want.refs(), refs);
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
            mark(world, role, true).await?;
        }
        let call = world.clients.iam.put_role_policy().role_name(role);
        let call = call.policy_name(&want.policy_name);
        let document = want.policy_document.to_string();
        let done = call.policy_document(document).send().await;
        done.creating(CALL)?;
        Ok(made(id(role, &want.policy_name)))
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let (role, policy) = parts(have.physical);
        let call = world.clients.iam.delete_role_policy().role_name(role);
        let done = call.policy_name(policy).send().await;
        done.called("iam:DeleteRolePolicy")?;
        if policy != role {
            after_effect(unmark(world, role).await)?;
        }
        Ok(Removed::Done)
    }
}

impl Verbs for IamRolePolicyAttachment {
    async fn find(
        world: &AwsWorld,
        want: &Self,
        refs: &Refs,
    ) -> Result<Option<Observed<Cloud>>, Failure> {
        let role = physical(refs, &want.role_name, "iam:ListAttachedRolePolicies")?;
        let mut attached = absent(attached(world, name_of(&role)).await)?.unwrap_or_default();
        attached.retain(|arn| *arn == want.policy_arn);
        let raw = Raw {
            role,
            inline: Vec::new(),
            attached,
        };
        let names = Names::around(&want.refs(), refs);
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
        mark(world, role, true).await?;
        let call = world.clients.iam.attach_role_policy().role_name(role);
        let done = call.policy_arn(&want.policy_arn).send().await;
        done.creating(CALL)?;
        Ok(made(id(role, &want.policy_arn)))
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let (role, policy) = parts(have.physical);
        let call = world.clients.iam.detach_role_policy().role_name(role);
        let done = call.policy_arn(policy).send().await;
        done.called("iam:DetachRolePolicy")?;
        after_effect(unmark(world, role).await)?;
        Ok(Removed::Done)
    }
}

fn parts(physical: &str) -> (&str, &str) {
    physical.split_once(BETWEEN).unwrap_or((physical, ""))
}

/// After a policy beside the role's own is gone: if it was the last, the role need not say so any more.
/// A cluster that is being deleted loses the role itself.
async fn unmark(world: &AwsWorld, role: &str) -> Result<(), Failure> {
    if world.scope.deleting() {
        return Ok(());
    }
    let left = names_of_policies(world, role).await?;
    if left.iter().all(|policy| policy == role) {
        mark(world, role, false).await?;
    }
    Ok(())
}
