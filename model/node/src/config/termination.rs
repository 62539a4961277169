//! How protokube handles instances that AWS is about to end.

use serde::{Deserialize, Serialize};

/// Settings of control planes for instances that AWS is about to end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Termination {
    /// Account of the SQS queue.
    pub account: String,
    /// Name of the SQS queue that receives the events.
    pub queue: String,
    /// Drains at spot interruptions.
    pub spot_interruption: bool,
    /// Drains at scheduled events.
    pub scheduled_events: bool,
    /// What happens at rebalance recommendations.
    pub rebalance: Rebalance,
    /// Takes drained Nodes out of load balancers of Services.
    pub exclude_from_load_balancers: bool,
    /// Taints Nodes with the reason.
    pub taint: bool,
    /// Termination grace period of evicted pods; `None`: their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_grace_seconds: Option<u32>,
}

/// What happens at a rebalance recommendation of EC2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Rebalance {
    #[default]
    Ignore,
    Cordon,
    Drain,
}
