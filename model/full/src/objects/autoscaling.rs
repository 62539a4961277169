//! An Auto Scaling group for each instance group, with its lifecycle hooks and its warm pool.

use crate::{ExternalLoadBalancer, FullSpec, Group};
use cloud::{
    AutoscalingGroup, AutoscalingLifecycleHook, AutoscalingWarmPool, Cloud, GroupTag, Kind,
    LaunchTemplate, LaunchTemplateRef, LbTargetGroup,
};
use engine::{Ref, Text};
use node::config::Role;
use node::names;
use node::termination::HOOK_SECONDS;
use sha2::{Digest, Sha256};

/// All group metrics that are free of charge, sorted.
const METRICS: [&str; 8] = [
    "GroupDesiredCapacity",
    "GroupInServiceInstances",
    "GroupMaxSize",
    "GroupMinSize",
    "GroupPendingInstances",
    "GroupStandbyInstances",
    "GroupTerminatingInstances",
    "GroupTotalInstances",
];
/// Metrics of warm pools, free of charge too.
const POOL_METRICS: [&str; 8] = [
    "GroupAndWarmPoolDesiredCapacity",
    "GroupAndWarmPoolTotalCapacity",
    "WarmPoolDesiredCapacity",
    "WarmPoolMinSize",
    "WarmPoolPendingCapacity",
    "WarmPoolTerminatingCapacity",
    "WarmPoolTotalCapacity",
    "WarmPoolWarmedCapacity",
];
/// Bytes of the digest of a group's hooks.
const DIGEST_BYTES: usize = 8;

pub(super) fn build_autoscaling(full: &FullSpec) -> Vec<Cloud> {
    let mut all = Vec::new();
    for group in &full.groups {
        let launch = launch_hook(full, group);
        let pool = warm_pool(full, group, launch.as_ref());
        let hooks = termination_hook(full, group).into_iter().chain(launch);
        let hooks: Vec<AutoscalingLifecycleHook> = hooks.collect();
        all.push(autoscaling_group(full, group, &hooks).into());
        all.extend(hooks.into_iter().map(Cloud::from));
        all.extend(pool.map(Cloud::from));
    }
    all
}

fn autoscaling_group(
    full: &FullSpec,
    group: &Group,
    hooks: &[AutoscalingLifecycleHook],
) -> AutoscalingGroup {
    let name = names::autoscaling_group(&full.name, &group.name, group.role);
    let template = super::id_of::<LaunchTemplate>(&name);
    AutoscalingGroup {
        auto_scaling_group_name: name,
        capacity_rebalance: group.capacity_rebalance,
        enabled_metrics: metrics(group),
        launch_template: LaunchTemplateRef {
            launch_template_id: Ref::own(&template),
            version: Text::late(&template, "latest_version"),
        },
        load_balancer_names: super::sort_unique(
            group
                .external_load_balancers
                .iter()
                .filter_map(classic_name),
        ),
        max_instance_lifetime: group.max_instance_lifetime,
        max_size: group.max_size,
        min_size: group.min_size,
        mixed_instances_policy: group.mixed_instances.clone(),
        new_instances_protected_from_scale_in: group.instance_protection,
        suspended_processes: super::sort_unique(group.suspend_processes.iter().cloned()),
        tags: group_tags(full, group, hooks),
        target_group_arns: target_groups(full, group),
        vpc_zone_identifier: super::subnet_refs(full, &group.subnets),
    }
}

fn metrics(group: &Group) -> Vec<String> {
    let of_pool = group.warm_pool.iter().flat_map(|_| POOL_METRICS);
    super::sort_unique(METRICS.into_iter().chain(of_pool).map(str::to_owned))
}

fn group_tags(full: &FullSpec, group: &Group, hooks: &[AutoscalingLifecycleHook]) -> Vec<GroupTag> {
    let propagated = super::group_tags::instance_group_tags(full, group)
        .into_iter()
        .map(|(key, value)| GroupTag {
            key,
            value,
            propagate_at_launch: true,
        });
    let digest = (!hooks.is_empty()).then(|| GroupTag {
        key: names::HOOKS_TAG.into(),
        value: hooks_digest(hooks),
        propagate_at_launch: false,
    });
    super::sort_unique(propagated.chain(digest))
}

/// The digest of a group's hooks: the first 16 hex digits of the sha256 of their JSON, sorted by name. It is stored in a tag,
/// because AWS describes hooks only for one group at a time, while tags come with the group.
pub fn hooks_digest(hooks: &[AutoscalingLifecycleHook]) -> String {
    let mut hooks = hooks.to_vec();
    hooks.sort_by(|a, b| a.lifecycle_hook_name.cmp(&b.lifecycle_hook_name));
    // `serde_json::Value` sorts its keys. A struct of strings and numbers can always be serialized.
    let json = serde_json::to_value(&hooks).unwrap_or_default().to_string();
    let digest = Sha256::digest(json);
    let bytes = digest.iter().take(DIGEST_BYTES);
    let pairs: Vec<String> = bytes.map(|byte| format!("{byte:02x}")).collect();
    pairs.concat()
}

fn termination_hook(full: &FullSpec, group: &Group) -> Option<AutoscalingLifecycleHook> {
    let name = names::autoscaling_group(&full.name, &group.name, group.role);
    full.node_termination
        .is_some()
        .then(|| AutoscalingLifecycleHook {
            lifecycle_hook_name: names::lifecycle_hook(&group.name),
            auto_scaling_group_name: super::own_ref::<AutoscalingGroup>(name),
            default_result: "CONTINUE".into(),
            heartbeat_timeout: HOOK_SECONDS,
            lifecycle_transition: "autoscaling:EC2_INSTANCE_TERMINATING".into(),
        })
}

/// An instance that cannot prepare is given up and replaced.
fn launch_hook(full: &FullSpec, group: &Group) -> Option<AutoscalingLifecycleHook> {
    let seconds = group.warm_pool.as_ref()?.hook_seconds?;
    let name = names::autoscaling_group(&full.name, &group.name, group.role);
    Some(AutoscalingLifecycleHook {
        lifecycle_hook_name: names::WARM_POOL_HOOK.into(),
        auto_scaling_group_name: super::own_ref::<AutoscalingGroup>(name),
        default_result: "ABANDON".into(),
        heartbeat_timeout: seconds,
        lifecycle_transition: "autoscaling:EC2_INSTANCE_LAUNCHING".into(),
    })
}

fn warm_pool(
    full: &FullSpec,
    group: &Group,
    hook: Option<&AutoscalingLifecycleHook>,
) -> Option<AutoscalingWarmPool> {
    let pool = group.warm_pool.as_ref()?;
    let name = names::autoscaling_group(&full.name, &group.name, group.role);
    Some(AutoscalingWarmPool {
        auto_scaling_group_name: super::own_ref::<AutoscalingGroup>(name),
        launch_hook: hook.map(|hook| Ref::own(&hook.id())),
        max_group_prepared_capacity: pool.max_size,
        min_size: pool.min_size,
        pool_state: "Stopped".into(),
        reuse_on_scale_in: false,
    })
}

fn target_groups(full: &FullSpec, group: &Group) -> Vec<Ref> {
    let own = match group.role {
        Role::ControlPlane => super::load_balancer::target_groups(full),
        Role::Bastion => super::bastion::target_groups(full),
        Role::Node => Vec::new(),
    };
    let own = own.into_iter().map(super::own_ref::<LbTargetGroup>);
    let given = group
        .external_load_balancers
        .iter()
        .filter_map(|one| match one {
            ExternalLoadBalancer::TargetGroup(arn) => Some(Ref::Given(arn.clone())),
            ExternalLoadBalancer::Classic(_) => None,
        });
    super::sort_unique(own.chain(given))
}

fn classic_name(balancer: &ExternalLoadBalancer) -> Option<String> {
    match balancer {
        ExternalLoadBalancer::Classic(name) => Some(name.clone()),
        ExternalLoadBalancer::TargetGroup(_) => None,
    }
}
