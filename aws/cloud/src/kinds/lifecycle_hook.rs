//! Lifecycle hooks. AWS describes them group by group, so a digest of a group's hooks is a tag of the group,
//! written once the hooks are as it says: where it is the wanted one, the hooks are not read.

use super::autoscaling::{is_going, write_tags};
use super::{
    Found, Have, Verbs, after_effect, created_ready, desired_by_name, desired_of_kind, find_same,
    observed_item, physical,
};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::Classify;
use aws_sdk_autoscaling::types as asg;
use cloud::{AutoscalingGroup, AutoscalingLifecycleHook, Cloud, GroupTag, Kind};
use engine::{Failure, Observed, Put, Ref, Refs, Removed};
use futures::future::try_join_all;
use node::names::HOOKS_TAG;

/// Between a hook's group and name in its physical id.
const BETWEEN: char = '/';

/// The hooks of these groups: as wanted where the digest says so, else as AWS describes them. Those of a group
/// that is not wanted go with it.
pub(crate) async fn fetch(
    world: &AwsWorld,
    groups: &[asg::AutoScalingGroup],
) -> Result<Vec<asg::LifecycleHook>, Failure> {
    let unsure = groups.iter().filter(|group| !is_going(group));
    let unsure = unsure.filter_map(|group| {
        let name = group.auto_scaling_group_name()?;
        let wanted = wanted_group(world, name)?;
        (!is_sealed(world, wanted, group)).then_some(name)
    });
    let found = try_join_all(unsure.map(|name| describe_hooks(world, name))).await?;
    Ok(found.into_iter().flatten().collect())
}

/// True if the digest on the group is that of the wanted hooks, and is to be believed.
fn is_sealed(world: &AwsWorld, wanted: &AutoscalingGroup, group: &asg::AutoScalingGroup) -> bool {
    !world.scope.refresh && wanted_digest(wanted) == observed_digest(group)
}

fn wanted_group<'a>(world: &'a AwsWorld, name: &str) -> Option<&'a AutoscalingGroup> {
    desired_by_name(world, name)
}

fn wanted_digest(of: &AutoscalingGroup) -> Option<&str> {
    let mut tags = of.tags.iter();
    let tag = tags.find(|tag| tag.key == HOOKS_TAG)?;
    Some(&tag.value)
}

fn observed_digest(group: &asg::AutoScalingGroup) -> Option<&str> {
    let mut tags = group.tags().iter();
    tags.find(|tag| tag.key() == Some(HOOKS_TAG))?.value()
}

/// Wanted hooks of a group.
fn wanted_hooks<'a>(
    world: &'a AwsWorld,
    group: &'a str,
) -> impl Iterator<Item = &'a AutoscalingLifecycleHook> {
    let of = move |hook: &&AutoscalingLifecycleHook| match &hook.auto_scaling_group_name {
        Ref::Own { name, .. } | Ref::Given(name) => name == group,
    };
    desired_of_kind::<AutoscalingLifecycleHook>(world).filter(of)
}

async fn describe_hooks(world: &AwsWorld, group: &str) -> Result<Vec<asg::LifecycleHook>, Failure> {
    let call = world.clients.autoscaling.describe_lifecycle_hooks();
    let answer = call.auto_scaling_group_name(group).send().await;
    let hooks = answer.classify_call("autoscaling:DescribeLifecycleHooks")?;
    Ok(hooks.lifecycle_hooks.unwrap_or_default())
}

/// Hooks that the digest of their group vouches for.
pub(crate) fn observe_sealed(
    world: &AwsWorld,
    groups: &[asg::AutoScalingGroup],
) -> Vec<Observed<Cloud>> {
    let sealed = groups.iter().filter(|group| !is_going(group));
    let names = sealed.filter_map(|group| {
        let name = group.auto_scaling_group_name()?;
        let wanted = wanted_group(world, name)?;
        is_sealed(world, wanted, group).then_some(name)
    });
    names
        .flat_map(|group| {
            wanted_hooks(world, group).map(move |hook| {
                observed_item(hook.clone(), physical_id(group, &hook.lifecycle_hook_name))
            })
        })
        .collect()
}

pub(crate) fn physical_id(group: &str, hook: &str) -> String {
    format!("{group}{BETWEEN}{hook}")
}

pub(crate) fn observe(raw: &asg::LifecycleHook, names: &Names) -> Option<Observed<Cloud>> {
    let group = raw.auto_scaling_group_name()?;
    let name = raw.lifecycle_hook_name()?;
    let hook = AutoscalingLifecycleHook {
        lifecycle_hook_name: name.to_owned(),
        auto_scaling_group_name: names.reference::<AutoscalingGroup>(group),
        default_result: raw.default_result().unwrap_or_default().to_owned(),
        heartbeat_timeout: raw.heartbeat_timeout().unwrap_or_default(),
        lifecycle_transition: raw.lifecycle_transition().unwrap_or_default().to_owned(),
    };
    Some(observed_item(hook, physical_id(group, name)))
}

/// Writes the digest on the group if all its wanted hooks, and no others, are there as wanted.
pub(super) async fn write_digest_if_settled(world: &AwsWorld, group: &str) -> Result<(), Failure> {
    let Some(wanted) = wanted_group(world, group) else {
        return Ok(());
    };
    let mut names = Names::default();
    names.insert(wanted.id(), group);
    let found = describe_hooks(world, group).await?;
    let mut found: Vec<Cloud> = found
        .iter()
        .filter_map(|raw| Some(observe(raw, &names)?.resource))
        .collect();
    for hook in wanted_hooks(world, group) {
        let hook = Cloud::from(hook.clone());
        match found.iter().position(|one| *one == hook) {
            Some(at) => found.swap_remove(at),
            None => return Ok(()),
        };
    }
    if found.is_empty() {
        write_digest(world, group, wanted).await?;
    }
    Ok(())
}

async fn write_digest(
    world: &AwsWorld,
    group: &str,
    wanted: &AutoscalingGroup,
) -> Result<(), Failure> {
    let digest = wanted.tags.iter().filter(|tag| tag.key == HOOKS_TAG);
    let digest: Vec<&GroupTag> = digest.collect();
    if digest.is_empty() {
        return Ok(());
    }
    let call = world.clients.autoscaling.create_or_update_tags();
    let done = call.set_tags(Some(write_tags(group, digest))).send().await;
    done.classify_creation("autoscaling:CreateOrUpdateTags")
        .map(drop)
}

impl Verbs for AutoscalingLifecycleHook {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        const CALL: &str = "autoscaling:DescribeLifecycleHooks";
        let group = physical(refs, &want.auto_scaling_group_name, CALL)?;
        let names = Names::for_references(&want.refs(), refs);
        let found = describe_hooks(world, &group).await?;
        let items = found.iter().filter_map(|raw| observe(raw, &names));
        Ok(find_same(items, &want.id()))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        const CALL: &str = "autoscaling:PutLifecycleHook";
        let group = physical(refs, &want.auto_scaling_group_name, CALL)?;
        let call = world
            .clients
            .autoscaling
            .put_lifecycle_hook()
            .auto_scaling_group_name(&group)
            .lifecycle_hook_name(&want.lifecycle_hook_name)
            .default_result(&want.default_result)
            .heartbeat_timeout(want.heartbeat_timeout)
            .lifecycle_transition(&want.lifecycle_transition);
        call.send().await.classify_creation(CALL)?;
        // The only hook of a new group needs no look at the others.
        let only = wanted_hooks(world, &group).count() == 1 && have.is_none();
        let sealed = match wanted_group(world, &group).filter(|_| only) {
            Some(wanted) => write_digest(world, &group, wanted).await,
            None => write_digest_if_settled(world, &group).await,
        };
        after_effect(sealed)?;
        Ok(created_ready(physical_id(
            &group,
            &want.lifecycle_hook_name,
        )))
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let Some((group, hook)) = have.physical.split_once(BETWEEN) else {
            return Ok(Removed::Done);
        };
        let call = world.clients.autoscaling.delete_lifecycle_hook();
        let call = call.auto_scaling_group_name(group);
        let done = call.lifecycle_hook_name(hook).send().await;
        done.classify_call("autoscaling:DeleteLifecycleHook")?;
        after_effect(write_digest_if_settled(world, group).await)?;
        Ok(Removed::Done)
    }
}
