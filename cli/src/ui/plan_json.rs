//! A plan as one JSON document for programs. Additions keep `format`; anything else raises it.

use model::cloud::Cloud;
use model::engine::{Action, Failure, FieldChange, Id, Plan, Reason, Report};
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
    /// Whether all changes were made.
    applied: bool,
    changes: Vec<Change<'a>>,
    summary: Summary,
    /// Changes that failed, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed: Vec<Failed<'a>>,
    /// Changes that were not tried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<&'a Id>,
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

/// A change that failed.
#[derive(Debug, Serialize)]
struct Failed<'a> {
    id: &'a Id,
    #[serde(flatten)]
    failure: &'a Failure,
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
    /// The document of a plan, and of how it went if it was applied.
    pub fn of(plan: &'a Plan<Cloud>, target: &'a Target, report: Option<&'a Report>) -> Self {
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
            applied: report.is_some_and(Report::is_complete),
            changes: plan.steps.values().map(change).collect(),
            summary: Summary {
                add: plan.count(Action::Create),
                change: plan.count(Action::Update),
                delete: plan.count(Action::Delete),
            },
            failed: report
                .into_iter()
                .flat_map(|report| &report.failed)
                .map(|(id, failure)| Failed { id, failure })
                .collect(),
            skipped: report
                .into_iter()
                .flat_map(|report| &report.skipped)
                .map(|(id, _)| id)
                .collect(),
        }
    }
}
