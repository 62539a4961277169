//! `kctl update --plan-out`: writes the plan to a file, for review.

use super::UpdateRun;
use crate::commands::assemble::{AssembledCluster, completed_documents};
use crate::commands::observe::ObservedCluster;
use crate::error::CommandError;
use crate::saved_plan::{self, PlanInputs, PlanOrigin, SavedPlan};
use crate::state::user_at_host;
use cloud::Cloud;
use engine::{Plan, Snapshot};
use std::path::Path;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Writes the plan to a file.
pub fn save_plan(
    file: &Path,
    plan: &Plan<Cloud>,
    snapshot: &Snapshot<Cloud>,
    observed: &ObservedCluster,
    assembled: &AssembledCluster,
    run: UpdateRun<'_>,
) -> Result<(), CommandError> {
    let made = OffsetDateTime::now_utc().replace_nanosecond(0);
    let made = made.map(|made| made.format(&Rfc3339));
    let origin = PlanOrigin {
        made: made.ok().and_then(Result::ok).unwrap_or_default(),
        by: user_at_host(),
        target: observed.target.clone(),
        store: run.session.url.clone(),
        refresh: run.options.refresh,
        allow_unsupported: run.options.observe.read.allow_unsupported,
        ignore_kubelet_version_skew: run.options.observe.ignore_skew,
    };
    let made_from = plan_inputs(plan, snapshot, observed, assembled)?;
    let saved = SavedPlan::new(plan, made_from, &assembled.stand_ins, origin)?;
    saved_plan::write(file, &saved)?;
    let shell = run.session.shell;
    shell.print_done(&format!("wrote the plan to {}", file.display()));
    if !plan.is_empty() {
        shell.hint(&format!(
            "kctl update --plan {} --yes    makes these changes, or none if others would be made by then",
            file.display()
        ));
    }
    Ok(())
}

/// Digests of what a plan was made from.
pub fn plan_inputs(
    plan: &Plan<Cloud>,
    snapshot: &Snapshot<Cloud>,
    observed: &ObservedCluster,
    assembled: &AssembledCluster,
) -> Result<PlanInputs, CommandError> {
    let completed = completed_documents(&assembled.expanded)?;
    Ok(PlanInputs::new(&observed.state, &completed, plan, snapshot))
}
