//! Changes of an Auto Scaling group: one call for each thing that differs.

use super::autoscaling::write_tags;
use super::{lifecycle_hook, mixed_instances, physical, physical_ids};
use crate::world::AwsWorld;
use aws_client::failure::{Classify, local_failure};
use aws_sdk_autoscaling::types::{LaunchTemplateSpecification, MixedInstancesPolicy};
use cloud::{AutoscalingGroup, GroupTag};
use engine::{Class, Failure, Ref, Refs};
use node::names::HOOKS_TAG;

/// What AWS calls "every minute".
const GRANULARITY: &str = "1Minute";

/// Turns `have` into `want`.
pub(super) async fn update(
    world: &AwsWorld,
    have: &AutoscalingGroup,
    want: &AutoscalingGroup,
    refs: &Refs,
) -> Result<(), Failure> {
    update_properties(world, have, want, refs).await?;
    processes_and_metrics(world, have, want).await?;
    update_classic_balancers(world, have, want).await?;
    target_groups(world, have, want, refs).await?;
    update_tags(world, have, want).await
}

async fn update_properties(
    world: &AwsWorld,
    have: &AutoscalingGroup,
    want: &AutoscalingGroup,
    refs: &Refs,
) -> Result<(), Failure> {
    const CALL: &str = "autoscaling:UpdateAutoScalingGroup";
    let core = |group: &AutoscalingGroup| AutoscalingGroup {
        enabled_metrics: Vec::new(),
        load_balancer_names: Vec::new(),
        suspended_processes: Vec::new(),
        tags: Vec::new(),
        target_group_arns: Vec::new(),
        ..group.clone()
    };
    if core(have) == core(want) {
        return Ok(());
    }
    let lifetime = want.max_instance_lifetime;
    let launch = what_is_launched(want, refs, CALL)?;
    let call = world
        .clients
        .autoscaling
        .update_auto_scaling_group()
        .auto_scaling_group_name(&want.auto_scaling_group_name)
        .capacity_rebalance(want.capacity_rebalance)
        .set_launch_template(launch.template)
        .set_mixed_instances_policy(launch.policy)
        .set_max_instance_lifetime((lifetime != have.max_instance_lifetime).then_some(lifetime))
        .max_size(want.max_size)
        .min_size(want.min_size)
        .new_instances_protected_from_scale_in(want.new_instances_protected_from_scale_in)
        .vpc_zone_identifier(physical_ids(refs, &want.vpc_zone_identifier, CALL)?.join(","));
    call.send().await.classify_creation(CALL).map(drop)
}

/// Suspended processes and enabled metrics.
pub(super) async fn processes_and_metrics(
    world: &AwsWorld,
    have: &AutoscalingGroup,
    want: &AutoscalingGroup,
) -> Result<(), Failure> {
    let (client, name) = (&world.clients.autoscaling, &want.auto_scaling_group_name);
    let suspend = missing_items(&want.suspended_processes, &have.suspended_processes);
    if !suspend.is_empty() {
        let call = client.suspend_processes().auto_scaling_group_name(name);
        let done = call.set_scaling_processes(Some(suspend)).send().await;
        done.classify_creation("autoscaling:SuspendProcesses")?;
    }
    let resume = missing_items(&have.suspended_processes, &want.suspended_processes);
    if !resume.is_empty() {
        let call = client.resume_processes().auto_scaling_group_name(name);
        let done = call.set_scaling_processes(Some(resume)).send().await;
        done.classify_creation("autoscaling:ResumeProcesses")?;
    }
    let enable = missing_items(&want.enabled_metrics, &have.enabled_metrics);
    if !enable.is_empty() {
        let call = client.enable_metrics_collection();
        let call = call.auto_scaling_group_name(name).granularity(GRANULARITY);
        let done = call.set_metrics(Some(enable)).send().await;
        done.classify_creation("autoscaling:EnableMetricsCollection")?;
    }
    let disable = missing_items(&have.enabled_metrics, &want.enabled_metrics);
    if !disable.is_empty() {
        let call = client.disable_metrics_collection();
        let call = call.auto_scaling_group_name(name);
        let done = call.set_metrics(Some(disable)).send().await;
        done.classify_creation("autoscaling:DisableMetricsCollection")?;
    }
    Ok(())
}

async fn update_classic_balancers(
    world: &AwsWorld,
    have: &AutoscalingGroup,
    want: &AutoscalingGroup,
) -> Result<(), Failure> {
    let (client, name) = (&world.clients.autoscaling, &want.auto_scaling_group_name);
    let attach = missing_items(&want.load_balancer_names, &have.load_balancer_names);
    if !attach.is_empty() {
        let call = client.attach_load_balancers().auto_scaling_group_name(name);
        let done = call.set_load_balancer_names(Some(attach)).send().await;
        done.classify_creation("autoscaling:AttachLoadBalancers")?;
    }
    let detach = missing_items(&have.load_balancer_names, &want.load_balancer_names);
    if !detach.is_empty() {
        let call = client.detach_load_balancers().auto_scaling_group_name(name);
        let done = call.set_load_balancer_names(Some(detach)).send().await;
        done.classify_creation("autoscaling:DetachLoadBalancers")?;
    }
    Ok(())
}

async fn target_groups(
    world: &AwsWorld,
    have: &AutoscalingGroup,
    want: &AutoscalingGroup,
    refs: &Refs,
) -> Result<(), Failure> {
    const ATTACH: &str = "autoscaling:AttachLoadBalancerTargetGroups";
    const DETACH: &str = "autoscaling:DetachLoadBalancerTargetGroups";
    let (client, name) = (&world.clients.autoscaling, &want.auto_scaling_group_name);
    let attach = missing_items(&want.target_group_arns, &have.target_group_arns);
    if !attach.is_empty() {
        let call = client.attach_load_balancer_target_groups();
        let call = call.auto_scaling_group_name(name);
        let arns = physical_ids(refs, &attach, ATTACH)?;
        let done = call.set_target_group_arns(Some(arns)).send().await;
        done.classify_creation(ATTACH)?;
    }
    let detach = missing_items(&have.target_group_arns, &want.target_group_arns);
    // One that is gone by now has taken its targets with it.
    let arns: Vec<String> = detach
        .iter()
        .filter_map(|one: &Ref| refs.physical(one))
        .collect();
    if !arns.is_empty() {
        let call = client.detach_load_balancer_target_groups();
        let call = call.auto_scaling_group_name(name);
        let done = call.set_target_group_arns(Some(arns)).send().await;
        done.classify_creation(DETACH)?;
    }
    Ok(())
}

/// Tags; the digest of the hooks is written only where the hooks are as it says.
async fn update_tags(
    world: &AwsWorld,
    have: &AutoscalingGroup,
    want: &AutoscalingGroup,
) -> Result<(), Failure> {
    let name = &want.auto_scaling_group_name;
    let differs = |tag: &&GroupTag| !have.tags.contains(tag);
    let set: Vec<&GroupTag> = want.tags.iter().filter(differs).collect();
    let digest_differs = set.iter().any(|tag| tag.key == HOOKS_TAG);
    let set: Vec<&GroupTag> = set.into_iter().filter(|tag| tag.key != HOOKS_TAG).collect();
    if !set.is_empty() {
        let call = world.clients.autoscaling.create_or_update_tags();
        let done = call.set_tags(Some(write_tags(name, set))).send().await;
        done.classify_creation("autoscaling:CreateOrUpdateTags")?;
    }
    let kept = |tag: &GroupTag| want.tags.iter().any(|want| want.key == tag.key);
    let unset: Vec<&GroupTag> = have.tags.iter().filter(|tag| !kept(tag)).collect();
    if !unset.is_empty() {
        let call = world.clients.autoscaling.delete_tags();
        let done = call.set_tags(Some(write_tags(name, unset))).send().await;
        done.classify_creation("autoscaling:DeleteTags")?;
    }
    if digest_differs {
        lifecycle_hook::write_digest_if_settled(world, name).await?;
    }
    Ok(())
}

/// Those of the first that the second lacks.
fn missing_items<T: Clone + PartialEq>(of: &[T], those: &[T]) -> Vec<T> {
    of.iter()
        .filter(|one| !those.contains(one))
        .cloned()
        .collect()
}

/// What a group launches, in the one of two fields where AWS takes it: an update with a template ends a policy.
pub(super) struct Launch {
    pub template: Option<LaunchTemplateSpecification>,
    pub policy: Option<MixedInstancesPolicy>,
}

pub(super) fn what_is_launched(
    want: &AutoscalingGroup,
    refs: &Refs,
    call: &str,
) -> Result<Launch, Failure> {
    let template = launch_template_specification(want, refs, call)?;
    Ok(match &want.mixed_instances_policy {
        None => Launch {
            template: Some(template),
            policy: None,
        },
        Some(policy) => Launch {
            template: None,
            policy: Some(mixed_instances::write(policy, template)),
        },
    })
}

/// The launch template as a group names it.
fn launch_template_specification(
    want: &AutoscalingGroup,
    refs: &Refs,
    call: &str,
) -> Result<LaunchTemplateSpecification, Failure> {
    let template = &want.launch_template;
    let version = template.version.as_known();
    let version = version.ok_or_else(|| {
        local_failure(
            Class::Invalid,
            call,
            "the launch template's version is not known",
        )
    })?;
    Ok(LaunchTemplateSpecification::builder()
        .launch_template_id(physical(refs, &template.launch_template_id, call)?)
        .version(version)
        .build())
}
