//! A plan on the terminal, or as JSON.

use super::Run;
use crate::args::PlanFormat;
use crate::commands::look::Looked;
use crate::commands::session::Session;
use crate::error::{CommandError, Context};
use crate::planned::Target;
use crate::saved_plan::{SavedPlan, Stale};
use crate::ui::plan::{self, View};
use crate::ui::plan_json::{Document, hide};
use cloud::Cloud;
use engine::{Plan, Report};
use spec::not_yet::NotYet;

/// What is shown.
pub struct Shown<'a> {
    /// The plan.
    pub plan: &'a Plan<Cloud>,
    /// Texts in it that will be others.
    pub stand_ins: &'a [String],
    /// For whom it is.
    pub target: &'a Target,
    /// What nobody does for it yet.
    pub not_yet: &'a [NotYet],
    /// How it went, if it was applied.
    pub report: Option<&'a Report>,
    /// The saved plan that it is, and whether that still applies.
    pub saved: Option<(&'a SavedPlan, &'a Stale)>,
}

impl<'a> Shown<'a> {
    /// A plan that was made now.
    pub fn of(plan: &'a Plan<Cloud>, stand_ins: &'a [String], looked: &'a Looked) -> Self {
        Self {
            plan,
            stand_ins,
            target: &looked.target,
            not_yet: &looked.not_yet,
            report: None,
            saved: None,
        }
    }
}

/// Shows a plan in the form that is wanted.
pub fn show(shown: &Shown<'_>, run: Run<'_>) -> Result<(), CommandError> {
    const DEFECT: &str = "report this: it is a defect of kctl";
    let (plan, shell) = (shown.plan, run.session.shell);
    if let Some(events) = run.events {
        events.planned(plan, shown.stand_ins);
        if let Some((_, stale)) = shown.saved {
            events.stale(stale);
        }
        return Ok(());
    }
    if run.how.output == PlanFormat::Json {
        let mut document = Document::of(plan, shown.target, shown.report).warning(shown.not_yet);
        if let Some((saved, stale)) = shown.saved {
            document = document.from(saved, stale);
        }
        let json = serde_json::to_value(&document);
        let mut json = json.failed("the plan has no JSON form", DEFECT)?;
        hide(&mut json, shown.stand_ins);
        let text = serde_json::to_string_pretty(&json);
        return shell.document(&text.failed("the plan has no JSON form", DEFECT)?);
    }
    let view = View {
        plan,
        wide: run.how.output == PlanFormat::Wide,
        paint: shell.paint(),
        stand_ins: shown.stand_ins,
    };
    if plan.is_empty() {
        let same = format!(
            "No changes. AWS matches the spec of {}.\n",
            shown.target.cluster
        );
        let kept = plan::render(view);
        let kept = Some(kept).filter(|kept| !kept.is_empty());
        return shell.result(&format!("{}{same}", kept.unwrap_or_default()));
    }
    shell.result(&format!("{}{}\n", plan::render(view), plan::summary(plan)))
}

/// What comes next.
pub fn hints(plan: &Plan<Cloud>, report: &Report, session: &Session<'_>) {
    let steps = report.done.iter().filter_map(|id| plan.steps.get(id));
    let templates =
        steps.filter(|step| step.id.kind() == "launch_template" && step.before.is_some());
    let templates = templates.count();
    if templates > 0 {
        let groups = if templates == 1 {
            "1 instance group".to_owned()
        } else {
            format!("{templates} instance groups")
        };
        session.shell.hint(&format!("new machines of {groups} get the new launch template; those that run keep the old one until they are replaced: `kctl get instances` shows which (UPTODATE no), docs/not-yet.md#rolling-updates how"));
    }
}

/// What comes after a cluster was made.
pub fn first_steps(cluster: &str, run: Run<'_>) {
    let shell = run.session.shell;
    if run.how.kubeconfig.is_none() {
        shell.hint(&format!(
            "kctl export kubeconfig {cluster}    lets kubectl reach it"
        ));
    }
    shell.hint(&format!(
        "kctl validate {cluster} --wait 15m    waits until its machines have joined"
    ));
}
