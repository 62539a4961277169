//! The cluster that a plan is for, and the number of its steps.

use cloud::Cloud;
use engine::{Action, Plan};
use serde::{Deserialize, Serialize};

/// The cluster that a plan is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterTarget {
    pub cluster: String,
    /// AWS account id: twelve digits.
    pub account: String,
    /// `eu-west-1`.
    pub region: String,
}

/// Number of steps by action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanSummary {
    /// To be created.
    pub add: usize,
    /// To be updated.
    pub change: usize,
    /// To be deleted.
    pub delete: usize,
}

impl PlanSummary {
    /// Counts the steps of a plan.
    pub fn new(plan: &Plan<Cloud>) -> Self {
        Self {
            add: plan.count(Action::Create),
            change: plan.count(Action::Update),
            delete: plan.count(Action::Delete),
        }
    }
}
