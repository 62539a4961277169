//! A plan as one JSON document. Additions keep `format`; any other change raises it.

use super::diff::LATE;
use super::member_change::MemberChange;
use crate::plan_target::{ClusterTarget, PlanSummary};
use crate::saved_plan::{PlanDrift, SavedPlan};
use cloud::Cloud;
use engine::{Action, Failure, FieldChange, Id, Kept, Plan, Reason, Report};
use serde::Serialize;
use serde_json::Value;
use spec::not_yet::NotYet;

/// Version of the format.
const FORMAT: u32 = 1;

#[derive(Debug, Serialize)]
pub struct PlanDocument<'a> {
    format: u32,
    cluster: &'a str,
    account: &'a str,
    region: &'a str,
    /// Features that kctl does not implement yet.
    warnings: &'a [NotYet],
    /// True if all changes were applied.
    applied: bool,
    changes: Vec<Change<'a>>,
    /// Members of etcd that are removed before, or come back.
    #[serde(skip_serializing_if = "<[MemberChange]>::is_empty")]
    etcd_members: &'a [MemberChange],
    #[serde(skip_serializing_if = "<[Kept]>::is_empty")]
    kept: &'a [Kept],
    summary: PlanSummary,
    /// Changes that failed, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed: Vec<FailedChange<'a>>,
    /// Changes that were not tried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<&'a Id>,
    /// The saved plan, if it comes from one, and whether it still applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_plan: Option<SavedPlanStatus<'a>>,
}

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
struct FailedChange<'a> {
    id: &'a Id,
    #[serde(flatten)]
    failure: &'a Failure,
}

#[derive(Debug, Serialize)]
struct SavedPlanStatus<'a> {
    sha256: &'a str,
    made: &'a str,
    by: &'a str,
    kctl: &'a str,
    applies: bool,
    moved: &'a PlanDrift,
}

/// The steps, by id.
pub fn plan_changes(plan: &Plan<Cloud>) -> Vec<Change<'_>> {
    let steps = plan.steps.values();
    let change = steps.map(|step| Change {
        id: &step.id,
        action: step.action,
        reason: &step.reason,
        changes: &step.changes,
    });
    change.collect()
}

impl<'a> PlanDocument<'a> {
    /// Makes the document of a plan, with the report if it was applied.
    pub fn new(
        plan: &'a Plan<Cloud>,
        target: &'a ClusterTarget,
        report: Option<&'a Report>,
    ) -> Self {
        Self {
            format: FORMAT,
            cluster: &target.cluster,
            account: &target.account,
            region: &target.region,
            warnings: &[],
            applied: report.is_some_and(Report::is_complete),
            changes: plan_changes(plan),
            etcd_members: &[],
            kept: &plan.kept,
            summary: PlanSummary::new(plan),
            failed: report
                .into_iter()
                .flat_map(|report| &report.failed)
                .map(|(id, failure)| FailedChange { id, failure })
                .collect(),
            skipped: report
                .into_iter()
                .flat_map(|report| &report.skipped)
                .map(|(id, _)| id)
                .collect(),
            saved_plan: None,
        }
    }

    /// Adds features that kctl does not implement yet.
    #[must_use]
    pub fn with_warnings(mut self, not_yet: &'a [NotYet]) -> Self {
        self.warnings = not_yet;
        self
    }

    /// Adds members of etcd that are removed before, or come back.
    #[must_use]
    pub fn with_members(mut self, members: &'a [MemberChange]) -> Self {
        self.etcd_members = members;
        self
    }

    /// Adds the saved plan and its comparison with the current one.
    #[must_use]
    pub fn with_saved_plan(mut self, saved: &'a SavedPlan, moved: &'a PlanDrift) -> Self {
        self.saved_plan = Some(SavedPlanStatus {
            sha256: saved.sha256(),
            made: &saved.made,
            by: &saved.by,
            kctl: &saved.kctl,
            applies: moved.still_applies(),
            moved,
        });
        self
    }
}

/// Replaces placeholder texts by [`LATE`].
pub fn hide_stand_ins(value: &mut Value, late: &[String]) {
    match value {
        Value::String(text) => {
            for stand_in in late {
                if text.contains(stand_in.as_str()) {
                    *text = text.replace(stand_in.as_str(), LATE);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide_stand_ins(item, late)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|item| hide_stand_ins(item, late)),
        _ => {}
    }
}
