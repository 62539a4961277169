//! IAM roles, policies and instance profiles, for each role with a group that has no instance profile of the user.

use crate::{FullSpec, cluster_tags, iam};
use cloud::{Cloud, IamInstanceProfile, IamRole, IamRolePolicy, IamRolePolicyAttachment};
use engine::Ref;
use node::config::Role;
use node::names;

pub(super) fn build_iam(full: &FullSpec) -> Vec<Cloud> {
    let used = |role: &Role| {
        let mut groups = full.groups.iter();
        groups.any(|one| one.role == *role && one.iam_profile.is_none())
    };
    [Role::ControlPlane, Role::Node, Role::Bastion]
        .into_iter()
        .filter(used)
        .flat_map(|role| build_role(full, role))
        .collect()
}

fn build_role(full: &FullSpec, role: Role) -> Vec<Cloud> {
    let name = names::iam_name(&full.name, role);
    let reference = super::own_ref::<IamRole>(&name);
    let tags = cluster_tags(full, &name);
    let mut all: Vec<Cloud> = vec![
        IamRole {
            role_name: name.clone(),
            assume_role_policy_document: iam::trust_policy(&full.placement),
            permissions_boundary: full.iam.permissions_boundary.clone(),
            tags: tags.clone(),
        }
        .into(),
        IamInstanceProfile {
            instance_profile_name: name.clone(),
            role_name: Some(reference.clone()),
            tags,
        }
        .into(),
    ];
    let policies = [
        (name.clone(), iam::role_policy(full, role)),
        (
            format!("additional.{name}"),
            iam::additional_policy(full, role),
        ),
    ];
    for (policy_name, document) in policies {
        all.extend(document.map(|policy_document| {
            Cloud::from(IamRolePolicy {
                policy_name,
                role_name: reference.clone(),
                policy_document,
            })
        }));
    }
    let attached = full.iam.external_policies.get(iam::role_key(role));
    all.extend(attach_policies(&reference, attached.into_iter().flatten()));
    all
}

/// The attachments of managed policies, by ARN, to a role.
pub(super) fn attach_policies<'a>(
    role: &Ref,
    policy_arns: impl IntoIterator<Item = &'a String>,
) -> Vec<Cloud> {
    let arns = super::sort_unique(policy_arns.into_iter().cloned()).into_iter();
    let attach = |policy_arn| IamRolePolicyAttachment {
        role_name: role.clone(),
        policy_arn,
    };
    arns.map(attach).map(Cloud::from).collect()
}
