//! kubelet's settings, of a cluster or a group.

use crate::api::kubelet::KubeletConfigSpec;
use crate::read::Problem;

use super::labels;
use super::text::check_one_of;
use node::duration::parse_seconds;

/// What kubelet can enforce.
const ENFORCED: [&str; 6] = [
    "none",
    "pods",
    "kube-reserved",
    "kube-reserved-compressible",
    "system-reserved",
    "system-reserved-compressible",
];

pub fn check(at: &str, config: Option<&KubeletConfigSpec>, problems: &mut Vec<Problem>) {
    let Some(config) = config else { return };
    labels::check_taints(&format!("{at}.taints"), &config.taints, problems);
    let choices: [(&str, &Option<String>, &[&str]); 6] = [
        (
            "authorizationMode",
            &config.authorization_mode,
            &["AlwaysAllow", "Webhook"],
        ),
        (
            "cpuManagerPolicy",
            &config.cpu_manager_policy,
            &["none", "static"],
        ),
        (
            "topologyManagerPolicy",
            &config.topology_manager_policy,
            &["none", "best-effort", "restricted", "single-numa-node"],
        ),
        ("logFormat", &config.log_format, &["text", "json"]),
        (
            "cgroupDriver",
            &config.cgroup_driver,
            &["systemd", "cgroupfs"],
        ),
        (
            "memorySwapBehavior",
            &config.memory_swap_behavior,
            &["NoSwap", "LimitedSwap"],
        ),
    ];
    for (name, value, values) in choices {
        if let Some(value) = value {
            check_one_of(format!("{at}.{name}"), value, values, problems);
        }
    }
    let enforced = config.enforce_node_allocatable.as_deref();
    let enforced = enforced.unwrap_or_default().split(',').map(str::trim);
    for part in enforced.filter(|part| !part.is_empty()) {
        check_one_of(
            format!("{at}.enforceNodeAllocatable"),
            part,
            &ENFORCED,
            problems,
        );
    }
    if let Some(pods) = config.max_pods.filter(|pods| *pods < 1) {
        problems.push(
            Problem::error(
                format!("{at}.maxPods"),
                format!("a Node cannot run {pods} pods"),
            )
            .hint("use 1 or more"),
        );
    }
    check_image_collection(at, config, problems);
    check_shutdown(at, config, problems);
    check_access(at, config, problems);
}

/// Who may ask kubelet, whose answers are commands in pods.
fn check_access(at: &str, config: &KubeletConfigSpec, problems: &mut Vec<Problem>) {
    if config.authorization_mode.as_deref() == Some("AlwaysAllow") {
        let problem = Problem::warning(
            format!("{at}.authorizationMode"),
            "whoever has any token of the cluster may run commands in the pods of the instance",
        );
        problems.push(problem.hint("remove it: kubelet asks the API server"));
    }
    if config.anonymous_auth == Some(true) {
        let problem = Problem::error(
            format!("{at}.anonymousAuth"),
            "anybody who reaches an instance could run commands in its pods",
        );
        problems.push(problem.hint("write false, or remove it"));
    }
}

fn check_image_collection(at: &str, config: &KubeletConfigSpec, problems: &mut Vec<Problem>) {
    let (high, low) = (
        config.image_gc_high_threshold_percent,
        config.image_gc_low_threshold_percent,
    );
    for (name, percent) in [
        ("imageGCHighThresholdPercent", high),
        ("imageGCLowThresholdPercent", low),
    ] {
        if let Some(percent) = percent.filter(|percent| !(0..=100).contains(percent)) {
            problems.push(
                Problem::error(
                    format!("{at}.{name}"),
                    format!("{percent} is not a percentage"),
                )
                .hint("use 0 to 100"),
            );
        }
    }
    if let (Some(high), Some(low)) = (high, low)
        && low >= high
    {
        let problem = Problem::error(
            format!("{at}.imageGCLowThresholdPercent"),
            format!("{low} is not below the high threshold {high}"),
        );
        problems
            .push(problem.hint("lower it: images are removed from the high down to the low one"));
    }
}

fn check_shutdown(at: &str, config: &KubeletConfigSpec, problems: &mut Vec<Problem>) {
    let value = |text: &Option<String>| text.as_deref().and_then(parse_seconds);
    if let (Some(all), Some(critical)) = (
        value(&config.shutdown_grace_period),
        value(&config.shutdown_grace_period_critical_pods),
    ) && critical > all
    {
        let problem = Problem::error(
            format!("{at}.shutdownGracePeriodCriticalPods"),
            "it is longer than the whole shutdownGracePeriod",
        );
        problems.push(problem.hint("it is a part of that period; use less"));
    }
}
