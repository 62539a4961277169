//! Rules of the cluster autoscaler.

use crate::api::addons::ClusterAutoscalerConfig;
use crate::api::cluster::ClusterSpec;
use crate::api::instance_group::InstanceGroupSpec;
use crate::expand::BY_PRIORITY;
use crate::read::{Problem, path};

const CUSTOM: &str = "spec.clusterAutoscaler.customPriorityExpanderConfig";

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let Some(config) = &spec.cluster_autoscaler else {
        return;
    };
    check_threshold(config, problems);
    check_priorities(config, problems);
}

/// kOps keeps priorities of groups in 16 bits.
pub fn check_group(spec: &InstanceGroupSpec, problems: &mut Vec<Problem>) {
    let Some(priority) = spec.autoscale_priority else {
        return;
    };
    if i16::try_from(priority).is_err() {
        let problem = Problem::error(
            "spec.autoscalePriority",
            format!("{priority} is not a priority"),
        );
        problems.push(problem.hint("use -32768 to 32767; the highest wins"));
    }
}

fn check_threshold(config: &ClusterAutoscalerConfig, problems: &mut Vec<Problem>) {
    let share = config.scale_down_utilization_threshold.as_deref();
    let share = share.and_then(|share| share.parse::<f64>().ok());
    if share.is_some_and(|share| share > 1.0) {
        let problem = Problem::error(
            "spec.clusterAutoscaler.scaleDownUtilizationThreshold",
            "more than all of a node",
        );
        problems.push(problem.hint("write a share, such as 0.5 for half of it"));
    }
}

fn check_priorities(config: &ClusterAutoscalerConfig, problems: &mut Vec<Problem>) {
    let custom = &config.custom_priority_expander_config;
    let by_priority = config.expander.as_deref() == Some(BY_PRIORITY);
    let hint = "set spec.clusterAutoscaler.expander: priority, or remove it";
    if !by_priority && !custom.is_empty() {
        let problem = Problem::error(CUSTOM, "only the expander priority reads priorities");
        problems.push(problem.hint(hint));
    }
    let at = "spec.clusterAutoscaler.createPriorityExpanderConfig";
    if !by_priority && config.create_priority_expander_config == Some(true) {
        let problem = Problem::error(at, "only the expander priority reads priorities");
        problems.push(problem.hint(hint));
    }
    if !custom.is_empty() && config.create_priority_expander_config == Some(false) {
        let problem = Problem::error(at, "the priorities of the spec would not be written");
        problems.push(problem.hint("remove it, or customPriorityExpanderConfig"));
    }
    for priority in custom.keys() {
        let number = priority.parse::<i32>().ok();
        if number.is_none_or(|number| number.to_string() != *priority) {
            let problem = Problem::error(
                path::field_path(CUSTOM, priority),
                format!("{priority:?} is not a priority"),
            );
            problems.push(problem.hint("write a whole number; the highest wins"));
        }
    }
}
