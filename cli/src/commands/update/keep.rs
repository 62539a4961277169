//! `kctl update --plan-out`: the plan in a file, for review.

use super::Run;
use crate::commands::assemble::{Assembled, completed_documents};
use crate::commands::look::Looked;
use crate::error::CommandError;
use crate::saved_plan::{self, Circumstances, MadeFrom, SavedPlan};
use crate::state::who;
use cloud::Cloud;
use engine::{Plan, Snapshot};
use std::path::Path;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Writes the plan to a file.
pub fn keep(
    file: &Path,
    plan: &Plan<Cloud>,
    seen: &Snapshot<Cloud>,
    looked: &Looked,
    assembled: &Assembled,
    run: Run<'_>,
) -> Result<(), CommandError> {
    let made = OffsetDateTime::now_utc().replace_nanosecond(0);
    let made = made.map(|made| made.format(&Rfc3339));
    let circumstances = Circumstances {
        made: made.ok().and_then(Result::ok).unwrap_or_default(),
        by: who(),
        target: looked.target.clone(),
        store: run.session.url.clone(),
        refresh: run.how.refresh,
        allow_unsupported: run.how.looking.read.allow_unsupported,
        ignore_kubelet_version_skew: run.how.looking.ignore_skew,
    };
    let made_from = made_from(plan, seen, looked, assembled)?;
    let saved = SavedPlan::of(plan, made_from, &assembled.stand_ins, circumstances)?;
    saved_plan::write(file, &saved)?;
    let shell = run.session.shell;
    shell.done(&format!("wrote the plan to {}", file.display()));
    if !plan.is_empty() {
        shell.hint(&format!(
            "kctl update --plan {} --yes    makes these changes, or none if others would be made by then",
            file.display()
        ));
    }
    Ok(())
}

/// What a plan was made from.
pub fn made_from(
    plan: &Plan<Cloud>,
    seen: &Snapshot<Cloud>,
    looked: &Looked,
    assembled: &Assembled,
) -> Result<MadeFrom, CommandError> {
    let completed = completed_documents(&assembled.expanded)?;
    Ok(MadeFrom::of(&looked.state, &completed, plan, seen))
}
