//! Node termination handling: draining of instances that AWS is about to stop.

use super::fill::fill;
use crate::api::cluster::ClusterSpec;
use full::NodeTermination;
use node::config::Rebalance;

/// Fills in the settings: on by default, in queue mode, with kOps' defaults for what protokube does.
pub(super) fn complete_node_termination(spec: &mut ClusterSpec) {
    let handler = spec.node_termination_handler.get_or_insert_default();
    fill(&mut handler.enabled, true);
    if handler.enabled == Some(false) {
        return;
    }
    fill(&mut handler.enable_sqs_termination_draining, true);
    fill(
        &mut handler.managed_asg_tag,
        "aws-node-termination-handler/managed",
    );
    fill(&mut handler.enable_spot_interruption_draining, true);
    fill(&mut handler.enable_scheduled_event_draining, true);
    fill(&mut handler.enable_rebalance_monitoring, false);
    fill(&mut handler.enable_rebalance_draining, false);
    fill(&mut handler.exclude_from_load_balancers, true);
    fill(&mut handler.taint_node, false);
    fill(&mut handler.pod_termination_grace_period, -1);
}

/// Node termination handling of a completed spec; `None` if it is off. Without the queue there is none: reading refuses that.
pub(super) fn full_node_termination(spec: &ClusterSpec) -> Option<NodeTermination> {
    let handler = spec.node_termination_handler.as_ref()?;
    let is_set = |setting: Option<bool>| setting == Some(true);
    let rebalance = if is_set(handler.enable_rebalance_draining) {
        Rebalance::Drain
    } else if is_set(handler.enable_rebalance_monitoring) {
        Rebalance::Cordon
    } else {
        Rebalance::Ignore
    };
    let on = is_set(handler.enabled) && is_set(handler.enable_sqs_termination_draining);
    on.then(|| NodeTermination {
        managed_tag: handler.managed_asg_tag.clone().unwrap_or_default(),
        spot_interruption: is_set(handler.enable_spot_interruption_draining),
        scheduled_events: is_set(handler.enable_scheduled_event_draining),
        rebalance,
        exclude_from_load_balancers: is_set(handler.exclude_from_load_balancers),
        taint: is_set(handler.taint_node),
        // A negative number stands for the pods' own.
        pod_grace_seconds: handler
            .pod_termination_grace_period
            .and_then(|seconds| u32::try_from(seconds).ok()),
    })
}
