//! An instance profile: what hands a role to instances.

use super::ec2::is_owned;
use super::iam_documents::{name_of, read_tags, write_tags};
use super::iam_role::is_of_pods;
use super::{
    Found, Have, Verbs, after_effect, created_ready, not_ours, observed_item, physical,
    rfc3339_time,
};
use crate::names::{Names, TagChanges};
use crate::world::AwsWorld;
use aws_client::failure::{Classify, none_if_absent, require_answer};
use aws_sdk_iam::types;
use cloud::{Cloud, IamInstanceProfile, IamRole, Kind};
use engine::{Class, Failure, Observed, Put, Ref, Refs, Removed};
use futures::future::try_join_all;

const GET: &str = "iam:GetInstanceProfile";
const CREATE: &str = "iam:CreateInstanceProfile";

/// The profiles of these roles that are the cluster's; a profile has its role's name.
pub(crate) async fn fetch(
    world: &AwsWorld,
    roles: &[types::Role],
) -> Result<Vec<types::InstanceProfile>, Failure> {
    let of_instances = roles.iter().filter(|role| !is_of_pods(world, role));
    let names = of_instances.map(types::Role::role_name);
    let found = try_join_all(names.map(|name| fetch_one(world, name))).await?;
    let found = found.into_iter().flatten();
    Ok(found
        .filter(|profile| is_owned(world, &read_tags(profile.tags())))
        .collect())
}

async fn fetch_one(
    world: &AwsWorld,
    name: &str,
) -> Result<Option<types::InstanceProfile>, Failure> {
    let call = world.clients.iam.get_instance_profile();
    let answer = call.instance_profile_name(name).send().await;
    Ok(none_if_absent(answer.classify_call(GET))?.and_then(|answer| answer.instance_profile))
}

pub(crate) fn observe(raw: &types::InstanceProfile, names: &Names) -> Observed<Cloud> {
    let name = raw.instance_profile_name();
    let role = raw.roles().first().map(types::Role::arn);
    let profile = IamInstanceProfile {
        instance_profile_name: name.to_owned(),
        role_name: role.map(|role| names.reference::<IamRole>(role)),
        tags: read_tags(raw.tags()),
    };
    let mut seen = observed_item(profile, raw.arn());
    seen.attrs
        .extend(role.map(|role| (ROLE.to_owned(), role.to_owned())));
    seen.created = rfc3339_time(Some(raw.create_date()));
    seen
}

/// Attribute: the ARN of the role in it, for taking it out.
const ROLE: &str = "role";

impl Verbs for IamInstanceProfile {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        let names = Names::for_references(&want.refs(), refs);
        match fetch_one(world, &want.instance_profile_name).await? {
            Some(raw) if !is_owned(world, &read_tags(raw.tags())) => {
                let what = format!("the instance profile {}", want.instance_profile_name);
                Err(not_ours(world, GET, &what))
            }
            found => Ok(found.map(|raw| observe(&raw, &names))),
        }
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        let name = &want.instance_profile_name;
        let role = want.role_name.as_ref();
        let Some(have) = have else {
            let call = world.clients.iam.create_instance_profile();
            let call = call.instance_profile_name(name);
            let done = call.set_tags(Some(write_tags(&want.tags))).send().await;
            let profile = require_answer(done.classify_creation(CREATE)?.instance_profile, CREATE)?;
            after_effect(add_role(world, name, role, refs).await)?;
            return Ok(created_ready(profile.arn));
        };
        if have.resource.role_name != want.role_name {
            if let Some(before) = have.attrs.get(ROLE) {
                take_out(world, name, before).await?;
            }
            after_effect(add_role(world, name, role, refs).await)?;
        }
        retag(world, name, have.resource, want).await?;
        Ok(created_ready(have.physical))
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let profile = name_of(have.physical);
        if let Some(role) = have.attrs.get(ROLE) {
            take_out(world, profile, role).await?;
        }
        let call = world.clients.iam.delete_instance_profile();
        let done = call.instance_profile_name(profile).send().await;
        done.classify_call("iam:DeleteInstanceProfile")?;
        Ok(Removed::Done)
    }
}

async fn add_role(
    world: &AwsWorld,
    profile: &str,
    role: Option<&Ref>,
    refs: &Refs,
) -> Result<(), Failure> {
    const CALL: &str = "iam:AddRoleToInstanceProfile";
    let Some(role) = role else {
        return Ok(());
    };
    let call = world.clients.iam.add_role_to_instance_profile();
    let call = call.instance_profile_name(profile);
    let role = physical(refs, role, CALL)?;
    let call = call.role_name(name_of(&role));
    call.send().await.classify_creation(CALL).map(drop)
}

/// A role that is not in it is out.
async fn take_out(world: &AwsWorld, profile: &str, role: &str) -> Result<(), Failure> {
    let call = world.clients.iam.remove_role_from_instance_profile();
    let call = call.instance_profile_name(profile).role_name(name_of(role));
    let done = call.send().await;
    match done.classify_call("iam:RemoveRoleFromInstanceProfile") {
        Err(failure) if failure.class != Class::Gone => Err(failure),
        _ => Ok(()),
    }
}

async fn retag(
    world: &AwsWorld,
    name: &str,
    have: &IamInstanceProfile,
    want: &IamInstanceProfile,
) -> Result<(), Failure> {
    let changes = TagChanges::tag_changes_between(&have.tags, &want.tags);
    if !changes.set.is_empty() {
        let call = world.clients.iam.tag_instance_profile();
        let call = call.instance_profile_name(name);
        let done = call.set_tags(Some(write_tags(&changes.set))).send().await;
        done.classify_call("iam:TagInstanceProfile")?;
    }
    if !changes.unset.is_empty() {
        let call = world.clients.iam.untag_instance_profile();
        let call = call.instance_profile_name(name);
        let done = call.set_tag_keys(Some(changes.unset)).send().await;
        done.classify_call("iam:UntagInstanceProfile")?;
    }
    Ok(())
}
