//! A plan as one JSON document for programs. Additions keep `format`; anything else raises it.

use model::cloud::Cloud;
use model::engine::{Action, FieldChange, Id, Plan, Reason};
use serde::Serialize;

/// The version of the document.
const FORMAT: u32 = 1;

/// The document.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    format: u32,
    cluster: &'a str,
    account: &'a str,
    region: &'a str,
    /// Whether the changes were made.
    applied: bool,
    changes: Vec<Change<'a>>,
    summary: Summary,
}

/// One step.
#[derive(Debug, Serialize)]
struct Change<'a> {
    id: &'a Id,
    action: Action,
    #[serde(flatten)]
    reason: &'a Reason,
    changes: &'a [FieldChange],
}

/// How many steps of each sort.
#[derive(Debug, Serialize)]
struct Summary {
    add: usize,
    change: usize,
    delete: usize,
}

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

impl<'a> Document<'a> {
    /// The document of a plan.
    pub fn of(plan: &'a Plan<Cloud>, target: &'a Target, applied: bool) -> Self {
        let change = |step: &'a model::engine::Step<Cloud>| Change {
            id: &step.id,
            action: step.action,
            reason: &step.reason,
            changes: &step.changes,
        };
        Self {
            format: FORMAT,
            cluster: &target.cluster,
            account: &target.account,
            region: &target.region,
            applied,
            changes: plan.steps.values().map(change).collect(),
            summary: Summary {
                add: plan.count(Action::Create),
                change: plan.count(Action::Update),
                delete: plan.count(Action::Delete),
            },
        }
    }
}
