//! What a plan is for, and how much it is.

use cloud::Cloud;
use engine::{Action, Plan};
use serde::{Deserialize, Serialize};

/// Which cluster a plan is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its name.
    pub cluster: String,
    /// Twelve digits.
    pub account: String,
    /// `eu-west-1`.
    pub region: String,
}

/// How many steps of each sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// To be created.
    pub add: usize,
    /// To be updated.
    pub change: usize,
    /// To be deleted.
    pub delete: usize,
}

impl Summary {
    /// Of a plan.
    pub fn of(plan: &Plan<Cloud>) -> Self {
        Self {
            add: plan.count(Action::Create),
            change: plan.count(Action::Update),
            delete: plan.count(Action::Delete),
        }
    }
}
