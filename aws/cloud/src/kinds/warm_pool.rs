//! Warm pools. AWS describes a pool with its group, so observing them makes no call.

use super::autoscaling::is_going;
use super::autoscaling_group::{fetch_one, is_absent};
use super::{Found, Have, Verbs, created_ready, observed_item, physical};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, local_failure};
use aws_sdk_autoscaling::types::{self as asg, InstanceReusePolicy, WarmPoolState, WarmPoolStatus};
use cloud::{AutoscalingGroup, AutoscalingLifecycleHook, AutoscalingWarmPool, Cloud, Kind};
use engine::{Class, Failure, Observed, Put, Refs, Removed};

/// Takes a limit away
/// (<https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutWarmPool.html>).
const NO_LIMIT: i32 = -1;

/// The pool of a group. A cluster that goes deletes its groups by force, and their pools with them; a group that a cluster loses
/// would fill its pool while it shrinks, so there the pool goes first. `hook`: the physical id of the hook that it follows.
pub(crate) fn observe(
    raw: &asg::AutoScalingGroup,
    hook: Option<&str>,
    names: &Names,
) -> Option<Observed<Cloud>> {
    let group = raw.auto_scaling_group_name()?;
    let pool = raw.warm_pool_configuration()?;
    if is_going(raw) || is_pending(pool) {
        return None;
    }
    let state = pool.pool_state().unwrap_or(&WarmPoolState::Stopped);
    let reuse = pool.instance_reuse_policy();
    let most = pool.max_group_prepared_capacity();
    let pool = AutoscalingWarmPool {
        auto_scaling_group_name: names.reference::<AutoscalingGroup>(group),
        launch_hook: hook.map(|hook| names.reference::<AutoscalingLifecycleHook>(hook)),
        max_group_prepared_capacity: most.filter(|most| *most >= 0),
        min_size: pool.min_size().unwrap_or_default(),
        pool_state: state.as_str().to_owned(),
        reuse_on_scale_in: reuse
            .and_then(InstanceReusePolicy::reuse_on_scale_in)
            .unwrap_or_default(),
    };
    Some(observed_item(pool, group))
}

fn is_pending(pool: &asg::WarmPoolConfiguration) -> bool {
    pool.status() == Some(&WarmPoolStatus::PendingDelete)
}

impl Verbs for AutoscalingWarmPool {
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        const CALL: &str = "autoscaling:DescribeAutoScalingGroups";
        let group = physical(refs, &want.auto_scaling_group_name, CALL)?;
        let found = fetch_one(world, &group).await?;
        let hook = want
            .launch_hook
            .as_ref()
            .and_then(|hook| refs.physical(hook));
        let names = Names::for_references(&want.refs(), refs);
        Ok(found.and_then(|raw| observe(&raw, hook.as_deref(), &names)))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        const CALL: &str = "autoscaling:PutWarmPool";
        let group = physical(refs, &want.auto_scaling_group_name, CALL)?;
        if have.is_none() && has_pending_pool(world, &group).await? {
            let message = format!("the former warm pool of {group} is still being deleted");
            return Err(local_failure(Class::NotYet, CALL, message));
        }
        let reuse = InstanceReusePolicy::builder().reuse_on_scale_in(want.reuse_on_scale_in);
        let call = world
            .clients
            .autoscaling
            .put_warm_pool()
            .auto_scaling_group_name(&group)
            .max_group_prepared_capacity(want.max_group_prepared_capacity.unwrap_or(NO_LIMIT))
            .min_size(want.min_size)
            .pool_state(WarmPoolState::from(want.pool_state.as_str()))
            .instance_reuse_policy(reuse.build());
        call.send().await.classify_creation(CALL)?;
        Ok(created_ready(group))
    }

    /// There is nothing to drain.
    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let call = world.clients.autoscaling.delete_warm_pool();
        let call = call
            .auto_scaling_group_name(have.physical)
            .force_delete(true);
        let done = call.send().await;
        match done.classify_call("autoscaling:DeleteWarmPool") {
            Err(failure) if is_absent(&failure) || has_no_pool(&failure) => Ok(Removed::Done),
            Err(failure) => Err(failure),
            Ok(_) => Ok(deletion_pending()),
        }
    }

    async fn gone(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let group = fetch_one(world, have.physical).await?;
        let pool = group.and_then(|group| group.warm_pool_configuration);
        Ok(pool.map_or(Removed::Done, |_| deletion_pending()))
    }
}

/// True while AWS ends the instances of a pool that was deleted: until then the group takes no new one.
async fn has_pending_pool(world: &AwsWorld, group: &str) -> Result<bool, Failure> {
    let group = fetch_one(world, group).await?;
    let pool = group.and_then(|group| group.warm_pool_configuration);
    Ok(pool.is_some_and(|pool| is_pending(&pool)))
}

/// AWS' words in hashicorp/terraform-provider-aws, `internal/service/autoscaling/group.go`.
fn has_no_pool(failure: &Failure) -> bool {
    failure.code == "ValidationError" && failure.message.contains("No warm pool found")
}

fn deletion_pending() -> Removed {
    Removed::Waiting("the instances of the warm pool to end".to_owned())
}
