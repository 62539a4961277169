//! Takes instances out of their Auto Scaling group, out of target groups and out of EC2, one at a time. Every call can be
//! repeated.

use crate::CloudClients;
use aws_client::failure::Classify;
use aws_sdk_elasticloadbalancingv2::types::TargetDescription;
use engine::Failure;
use node::names::DETACHED_TAG;
use std::collections::BTreeMap;

/// Detaches an instance from its Auto Scaling group, which launches another one for it. The tag comes first: whoever finds a
/// detached instance must know that it is to be terminated.
pub async fn detach_instance(
    clients: &CloudClients,
    scaling_group: &str,
    instance: &str,
) -> Result<(), Failure> {
    let tag = aws_sdk_ec2::types::Tag::builder()
        .key(DETACHED_TAG)
        .value(scaling_group)
        .build();
    let call = clients.ec2.create_tags().resources(instance).tags(tag);
    call.send().await.classify_call("ec2:CreateTags")?;
    let call = clients.autoscaling.detach_instances();
    let call = call
        .auto_scaling_group_name(scaling_group)
        .instance_ids(instance)
        .should_decrement_desired_capacity(false);
    let detached = call.send().await;
    detached
        .classify_call("autoscaling:DetachInstances")
        .map(drop)
}

/// Terminates an instance. A member of an Auto Scaling group leaves the group's load balancers first and goes through its lifecycle hook
/// (<https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks-overview.html>), and the group launches another one for it.
pub async fn terminate_instance(
    clients: &CloudClients,
    instance: &str,
    is_member: bool,
) -> Result<(), Failure> {
    if is_member {
        let call = clients
            .autoscaling
            .terminate_instance_in_auto_scaling_group();
        let call = call
            .instance_id(instance)
            .should_decrement_desired_capacity(false);
        let ended = call.send().await;
        return ended
            .classify_call("autoscaling:TerminateInstanceInAutoScalingGroup")
            .map(drop);
    }
    let call = clients.ec2.terminate_instances().instance_ids(instance);
    let ended = call.send().await;
    ended.classify_call("ec2:TerminateInstances").map(drop)
}

/// Terminates an instance of a warm pool, whose group prepares another one. Auto Scaling terminates no such instance by id
/// (<https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_TerminateInstanceInAutoScalingGroup.html>), EC2 does. One that
/// Auto Scaling has taken into service meanwhile is left alone: as a member of the group it is drained first.
pub async fn terminate_warm_instance(
    clients: &CloudClients,
    instance: &str,
) -> Result<(), Failure> {
    let call = clients.autoscaling.describe_auto_scaling_instances();
    let answer = call.instance_ids(instance).send().await;
    let answer = answer.classify_call("autoscaling:DescribeAutoScalingInstances")?;
    let mut found = answer.auto_scaling_instances().iter();
    let is_warm = found.any(|one| {
        let state = one.lifecycle_state();
        state.is_some_and(|state| state.starts_with("Warmed:"))
    });
    if !is_warm {
        return Ok(());
    }
    terminate_instance(clients, instance, false).await
}

/// Lets the termination of an instance go on that waits for a lifecycle hook of its group.
pub async fn complete_hook(
    clients: &CloudClients,
    scaling_group: &str,
    hook: &str,
    instance: &str,
) -> Result<(), Failure> {
    let call = clients.autoscaling.complete_lifecycle_action();
    let call = call
        .auto_scaling_group_name(scaling_group)
        .lifecycle_hook_name(hook)
        .instance_id(instance)
        .lifecycle_action_result("CONTINUE");
    let completed = call.send().await;
    completed
        .classify_call("autoscaling:CompleteLifecycleAction")
        .map(drop)
}

/// The targets of a target group by instance id, with their states: `initial`, `healthy`, `unhealthy`, `draining`, ...
pub async fn target_states(
    clients: &CloudClients,
    target_group: &str,
) -> Result<BTreeMap<String, String>, Failure> {
    let call = clients.elb.describe_target_health();
    let answer = call.target_group_arn(target_group).send().await;
    let answer = answer.classify_call("elasticloadbalancing:DescribeTargetHealth")?;
    let targets = answer.target_health_descriptions.unwrap_or_default();
    let state = |target: aws_sdk_elasticloadbalancingv2::types::TargetHealthDescription| {
        let id = target.target?.id?;
        let state = target.target_health?.state?;
        Some((id, state.as_str().to_owned()))
    };
    Ok(targets.into_iter().filter_map(state).collect())
}

/// Stops new connections to an instance through a target group.
pub async fn deregister_target(
    clients: &CloudClients,
    target_group: &str,
    instance: &str,
) -> Result<(), Failure> {
    let call = clients.elb.deregister_targets();
    let call = call
        .target_group_arn(target_group)
        .targets(target(instance));
    let done = call.send().await;
    done.classify_call("elasticloadbalancing:DeregisterTargets")
        .map(drop)
}

/// Lets a target group send connections to an instance again.
pub async fn register_target(
    clients: &CloudClients,
    target_group: &str,
    instance: &str,
) -> Result<(), Failure> {
    let call = clients.elb.register_targets();
    let call = call
        .target_group_arn(target_group)
        .targets(target(instance));
    let done = call.send().await;
    done.classify_call("elasticloadbalancing:RegisterTargets")
        .map(drop)
}

fn target(instance: &str) -> TargetDescription {
    TargetDescription::builder().id(instance).build()
}
