//! Warm pools: sizes, the time that instances have to prepare, and which groups can have one.

use crate::api::InstanceGroupRole;
use crate::api::cluster::ClusterSpec;
use crate::api::instance::WarmPoolSpec;
use crate::api::instance_group::InstanceGroupSpec;
use crate::read::Problem;
use crate::warm_pool::warm_pool_of;
use std::ops::RangeInclusive;

const AT: &str = "spec.warmPool";

/// `HeartbeatTimeout` of a lifecycle hook
/// (<https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutLifecycleHook.html>).
const HOOK_SECONDS: RangeInclusive<i32> = 30..=7200;

const NO_POOL: &str = "set \"warmPool: {maxSize: 0}\" in this group";

pub fn check_cluster(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    check_pool(spec.warm_pool.as_ref(), problems);
}

pub fn check_group(spec: &InstanceGroupSpec, cluster: &ClusterSpec, problems: &mut Vec<Problem>) {
    check_pool(spec.warm_pool.as_ref(), problems);
    let Some(pool) = warm_pool_of(spec, cluster) else {
        return;
    };
    if !matches!(spec.role, Some(InstanceGroupRole::Node) | None) {
        let message = "only groups of role Node have warm pools";
        problems.push(Problem::error(AT, message).hint("remove it"));
    }
    check_launch(spec, problems);
    let (most, least) = (pool.max_size, pool.min_size.unwrap_or_default());
    if let (Some(most), Some(smallest)) = (most, spec.min_size)
        && (1..=smallest).contains(&most)
        && least == 0
    {
        let path = match spec.warm_pool {
            Some(_) => format!("{AT}.maxSize"),
            None => "spec.minSize".to_owned(),
        };
        let message = format!(
            "the warm pool is always empty: its maxSize {most} counts the instances of the group, of which there are at least {smallest}"
        );
        let hint =
            "raise maxSize of the pool above minSize of the group, or give the pool a minSize";
        problems.push(Problem::warning(path, message).hint(hint));
    }
}

fn check_pool(pool: Option<&WarmPoolSpec>, problems: &mut Vec<Problem>) {
    let Some(pool) = pool else {
        return;
    };
    for (field, size) in [("minSize", pool.min_size), ("maxSize", pool.max_size)] {
        if let Some(size) = size.filter(|size| *size < 0) {
            let message = format!("a warm pool cannot have {size} instances");
            problems.push(Problem::error(format!("{AT}.{field}"), message).hint("use 0 or more"));
        }
    }
    if let (Some(least), Some(most)) = (pool.min_size, pool.max_size)
        && least > most
        && most >= 0
    {
        let message = format!("minSize {least} is above maxSize {most}");
        let hint = format!("lower minSize to {most}, or raise maxSize to {least}");
        problems.push(Problem::error(format!("{AT}.minSize"), message).hint(hint));
    }
    let seconds = pool.lifecycle_hook_timeout;
    if let Some(seconds) = seconds.filter(|seconds| !HOOK_SECONDS.contains(seconds)) {
        let message = format!("AWS does not wait {seconds} seconds");
        let hint = "use 30 to 7200; without it, AWS waits 600 seconds";
        let path = format!("{AT}.lifecycleHookTimeout");
        problems.push(Problem::error(path, message).hint(hint));
    }
    for (index, image) in pool.additional_images.iter().enumerate() {
        let path = format!("{AT}.additionalImages[{index}]");
        let registry = image.split('/').next().unwrap_or_default();
        if registry.contains(".dkr.ecr.") {
            let message =
                format!("{registry} wants a password, which instances have only as nodes");
            let hint = "remove it: kubelet pulls the image when a pod needs it";
            problems.push(Problem::warning(&path, message).hint(hint));
        }
        if image.is_empty() || image.contains(char::is_whitespace) {
            let message = format!("\"{image}\" is not the name of an image");
            let hint = "write it as registry.example.com/app:v1";
            problems.push(Problem::error(path, message).hint(hint));
        }
    }
}

/// "This operation cannot be called on an Auto Scaling group that has a mixed instances policy or a launch template [...] that requests
/// Spot Instances" (the SDKs' reference of `PutWarmPool` until 2025; AWS has lifted the first since, and so has kOps,
/// <https://github.com/kubernetes/kops/pull/17800>).
fn check_launch(spec: &InstanceGroupSpec, problems: &mut Vec<Problem>) {
    let mixed = spec.mixed_instances_policy.is_some();
    let (field, what) = match spec.max_price {
        _ if mixed => ("spec.mixedInstancesPolicy", "with a mixed instances policy"),
        Some(_) => ("spec.maxPrice", "of spot instances"),
        None => return,
    };
    let message = format!("a group {what} has no warm pool");
    problems.push(Problem::error(field, message).hint(format!("remove it, or {NO_POOL}")));
}
