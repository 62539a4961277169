//! A plan as one JSON document for programs. Additions keep `format`; anything else raises it.

use super::diff::LATE;
use crate::planned::{Summary, Target};
use crate::saved_plan::{SavedPlan, Stale};
use cloud::Cloud;
use engine::{Action, Failure, FieldChange, Id, Kept, Plan, Reason, Report};
use serde::Serialize;
use serde_json::Value;
use spec::not_yet::NotYet;

/// The version of the document.
const FORMAT: u32 = 1;

/// The document.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    format: u32,
    cluster: &'a str,
    account: &'a str,
    region: &'a str,
    /// What nobody does for the cluster yet.
    warnings: &'a [NotYet],
    /// Whether all changes were made.
    applied: bool,
    changes: Vec<Change<'a>>,
    /// What is not wanted and stays all the same.
    #[serde(skip_serializing_if = "<[Kept]>::is_empty")]
    kept: &'a [Kept],
    summary: Summary,
    /// Changes that failed, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed: Vec<Failed<'a>>,
    /// Changes that were not tried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<&'a Id>,
    /// If it comes from a file: which, and whether it still applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_plan: Option<Saved<'a>>,
}

/// One step.
#[derive(Debug, Serialize)]
pub struct Change<'a> {
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

/// A saved plan.
#[derive(Debug, Serialize)]
struct Saved<'a> {
    sha256: &'a str,
    made: &'a str,
    by: &'a str,
    kctl: &'a str,
    applies: bool,
    moved: &'a Stale,
}

/// The steps, by id.
pub fn changes(plan: &Plan<Cloud>) -> Vec<Change<'_>> {
    let steps = plan.steps.values();
    let change = steps.map(|step| Change {
        id: &step.id,
        action: step.action,
        reason: &step.reason,
        changes: &step.changes,
    });
    change.collect()
}

impl<'a> Document<'a> {
    /// The document of a plan, and of how it went if it was applied.
    pub fn of(plan: &'a Plan<Cloud>, target: &'a Target, report: Option<&'a Report>) -> Self {
        Self {
            format: FORMAT,
            cluster: &target.cluster,
            account: &target.account,
            region: &target.region,
            warnings: &[],
            applied: report.is_some_and(Report::is_complete),
            changes: changes(plan),
            kept: &plan.kept,
            summary: Summary::of(plan),
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
            saved_plan: None,
        }
    }

    /// The same, with what nobody does yet for the cluster.
    #[must_use]
    pub fn warning(mut self, not_yet: &'a [NotYet]) -> Self {
        self.warnings = not_yet;
        self
    }

    /// The same, of a plan that was saved.
    #[must_use]
    pub fn from(mut self, saved: &'a SavedPlan, moved: &'a Stale) -> Self {
        self.saved_plan = Some(Saved {
            sha256: saved.sha256(),
            made: &saved.made,
            by: &saved.by,
            kctl: &saved.kctl,
            applies: moved.applies(),
            moved,
        });
        self
    }
}

/// Writes [`LATE`] in the place of texts that will be others.
pub fn hide(value: &mut Value, late: &[String]) {
    match value {
        Value::String(text) => {
            for stand_in in late {
                if text.contains(stand_in.as_str()) {
                    *text = text.replace(stand_in.as_str(), LATE);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, late)),
        Value::Object(fields) => fields.values_mut().for_each(|item| hide(item, late)),
        _ => {}
    }
}
