//! Node termination handling: draining of instances that AWS is about to stop.

use super::fill::fill;
use crate::api::cluster::ClusterSpec;
use full::NodeTermination;

/// Fills in the settings: on by default, in queue mode, with kOps' defaults.
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
    fill(&mut handler.prometheus_enable, false);
    fill(&mut handler.pod_termination_grace_period, -1);
    fill(&mut handler.delete_sqs_msg_if_node_not_found, false);
    fill(&mut handler.cpu_request, "50m");
    fill(&mut handler.memory_request, "64Mi");
    fill(&mut handler.version, "v1.25.5");
}

/// Node termination handling of a completed spec; `None` if it is off.
pub(super) fn full_node_termination(spec: &ClusterSpec) -> Option<NodeTermination> {
    let handler = spec.node_termination_handler.as_ref()?;
    let is_set = |setting: Option<bool>| setting == Some(true);
    is_set(handler.enabled).then(|| NodeTermination {
        queue: is_set(handler.enable_sqs_termination_draining),
        managed_tag: handler.managed_asg_tag.clone().unwrap_or_default(),
        rebalance: is_set(handler.enable_rebalance_monitoring)
            || is_set(handler.enable_rebalance_draining),
    })
}
