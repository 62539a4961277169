//! Prints a plan as text, JSON or events.

use super::{KubeconfigChange, UpdateRun};
use crate::args::PlanFormat;
use crate::commands::observe::ObservedCluster;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorContext};
use crate::plan_target::ClusterTarget;
use crate::saved_plan::{PlanDrift, SavedPlan};
use crate::ui::member_change::MemberChange;
use crate::ui::plan::{self, PlanView};
use crate::ui::plan_json::{PlanDocument, hide_stand_ins};
use cloud::Cloud;
use engine::{Plan, Report};
use spec::not_yet::NotYet;

/// A plan to print.
pub struct PlanOutput<'a> {
    pub plan: &'a Plan<Cloud>,
    /// Placeholder texts in the plan.
    pub stand_ins: &'a [String],
    /// The cluster that the plan is for.
    pub target: &'a ClusterTarget,
    /// Features that the spec asks for and kctl does not implement yet.
    pub not_yet: &'a [NotYet],
    /// The report, if the plan was applied.
    pub report: Option<&'a Report>,
    /// The saved plan, if it comes from one, and its comparison with the current plan.
    pub saved: Option<(&'a SavedPlan, &'a PlanDrift)>,
    /// Members of etcd that leave before, or come back.
    pub members: &'a [MemberChange],
}

impl<'a> PlanOutput<'a> {
    /// A plan that is neither applied nor saved.
    pub fn new(
        plan: &'a Plan<Cloud>,
        stand_ins: &'a [String],
        observed: &'a ObservedCluster,
    ) -> Self {
        Self {
            plan,
            stand_ins,
            target: &observed.target,
            not_yet: &observed.not_yet,
            report: None,
            saved: None,
            members: &[],
        }
    }

    /// With the members of etcd that leave before, or come back.
    #[must_use]
    pub fn with_members(self, members: &'a [MemberChange]) -> Self {
        Self { members, ..self }
    }
}

/// Prints a plan in the form of `--output`.
pub fn show_plan(output: &PlanOutput<'_>, run: UpdateRun<'_>) -> Result<(), CommandError> {
    const DEFECT: &str = "report this: it is a defect of kctl";
    let (plan, shell) = (output.plan, run.session.shell);
    if let Some(events) = run.events {
        events.emit_members(output.members);
        events.emit_plan(plan, output.stand_ins);
        if let Some((_, stale)) = output.saved {
            events.emit_drift(stale);
        }
        return Ok(());
    }
    if run.options.output == PlanFormat::Json {
        let mut document =
            PlanDocument::new(plan, output.target, output.report).with_warnings(output.not_yet);
        document = document.with_members(output.members);
        if let Some((saved, stale)) = output.saved {
            document = document.with_saved_plan(saved, stale);
        }
        let json = serde_json::to_value(&document);
        let mut json = json.or_failed("the plan has no JSON form", DEFECT)?;
        hide_stand_ins(&mut json, output.stand_ins);
        let text = serde_json::to_string_pretty(&json);
        return shell.print_document(&text.or_failed("the plan has no JSON form", DEFECT)?);
    }
    for member in output.members {
        shell.print_result(&format!("{}\n", member.line()))?;
    }
    let view = PlanView {
        plan,
        wide: run.options.output == PlanFormat::Wide,
        paint: shell.paint(),
        stand_ins: output.stand_ins,
    };
    if plan.is_empty() && output.members.is_empty() {
        let message = format!(
            "No changes. AWS matches the spec of {}.\n",
            output.target.cluster
        );
        let kept = plan::render(view);
        let kept = Some(kept).filter(|kept| !kept.is_empty());
        return shell.print_result(&format!("{}{message}", kept.unwrap_or_default()));
    }
    shell.print_result(&format!(
        "{}{}\n",
        plan::render(view),
        plan::summary_line(plan)
    ))
}

/// Prints a hint about launch templates that were changed.
pub fn print_next_steps(plan: &Plan<Cloud>, report: &Report, session: &Session<'_>) {
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
        session.shell.hint(&format!("new instances of {groups} get the new launch template; running instances keep the old one until `kctl rolling-update` replaces them"));
    }
}

/// Prints next steps after a cluster was created.
pub fn print_first_steps(cluster: &str, run: UpdateRun<'_>) {
    let shell = run.session.shell;
    if !matches!(run.options.kubeconfig, KubeconfigChange::Write(_)) {
        shell.hint(&format!(
            "kctl export kubeconfig {cluster}    lets kubectl reach it"
        ));
    }
    shell.hint(&format!(
        "kctl validate {cluster} --wait 15m    waits until its instances have joined"
    ));
}
