//! `-o events`: JSON lines while a command runs. The first has the format version, the last the command's outcome. Additions
//! keep `format`; any other change raises it.

use super::Shell;
use super::member_change::MemberChange;
use super::plan_json::plan_changes;
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::plan_target::{ClusterTarget, PlanSummary};
use crate::saved_plan::PlanDrift;
use cloud::Cloud;
use engine::{Event, Plan, Report};
use serde::Serialize;
use serde_json::{Value, json};
use spec::not_yet::NotYet;
use time::OffsetDateTime;
use time::macros::format_description;

/// Version of the format.
const FORMAT: u32 = 1;

/// Writes events to stdout. If stdout is closed, the command goes on.
#[derive(Clone, Copy, Debug)]
pub struct Events<'a> {
    shell: &'a Shell,
}

/// One line: time and event.
#[derive(Serialize)]
struct EventLine<'a, T: Serialize> {
    time: String,
    #[serde(flatten)]
    what: &'a T,
}

impl<'a> Events<'a> {
    /// Writes the first line.
    pub fn begin(shell: &'a Shell, command: &str, cluster: &str) -> Self {
        let events = Self { shell };
        events.emit_line(&json!({
            "event": "begun",
            "format": FORMAT,
            "kctl": env!("CARGO_PKG_VERSION"),
            "command": command,
            "cluster": cluster,
        }));
        events
    }

    /// Writes account and region.
    pub fn emit_target(self, target: &ClusterTarget) {
        self.emit_line(
            &json!({"event": "target", "account": target.account, "region": target.region}),
        );
    }

    /// Writes the features that kctl does not implement yet.
    pub fn emit_not_yet(self, all: &[NotYet]) {
        self.emit_line(&json!({"event": "warnings", "warnings": all}));
    }

    /// Writes a line for each member of etcd that is removed before the steps, or comes back.
    pub fn emit_members(self, members: &[MemberChange]) {
        for member in members {
            let mut value = serde_json::to_value(member).unwrap_or_default();
            if let Some(fields) = value.as_object_mut() {
                fields.insert("event".to_owned(), Value::from("etcd_member"));
            }
            self.emit_line(&value);
        }
    }

    /// Writes a line for each step and each kept resource, and a summary. `late` are the placeholder texts.
    pub fn emit_plan(self, plan: &Plan<Cloud>, late: &[String]) {
        for change in plan_changes(plan) {
            let mut value = serde_json::to_value(change).unwrap_or_default();
            super::plan_json::hide_stand_ins(&mut value, late);
            if let Some(fields) = value.as_object_mut() {
                fields.insert("event".to_owned(), Value::from("change"));
            }
            self.emit_line(&value);
        }
        for kept in &plan.kept {
            let mut value = serde_json::to_value(kept).unwrap_or_default();
            if let Some(fields) = value.as_object_mut() {
                fields.insert("event".to_owned(), Value::from("kept"));
            }
            self.emit_line(&value);
        }
        self.emit_line(&json!({"event": "plan", "summary": PlanSummary::new(plan)}));
    }

    /// Writes whether a saved plan still applies.
    pub fn emit_drift(self, stale: &PlanDrift) {
        self.emit_line(
            &json!({"event": "saved_plan", "applies": stale.still_applies(), "moved": stale}),
        );
    }

    /// Writes an event of the engine.
    pub fn emit_event(self, event: &Event) {
        self.emit_line(event);
    }

    /// Writes the report of the apply.
    pub fn emit_applied(self, report: &Report) {
        self.emit_line(&json!({
            "event": "applied",
            "complete": report.is_complete(),
            "interrupted": report.interrupted,
            "done": report.done.len(),
            "failed": report.failed.len(),
            "skipped": report.skipped.len(),
        }));
    }

    /// Writes the last line.
    pub fn emit_end(self, ended: &Result<Outcome, CommandError>) {
        let (outcome, code) = match ended {
            Ok(Outcome::Fine) => ("fine", Outcome::Fine.exit_code()),
            Ok(pending @ Outcome::ChangesPending) => ("changes_pending", pending.exit_code()),
            Err(error) => (kind_word(error.kind), error.kind.exit_code()),
        };
        let mut line = json!({"event": "ended", "outcome": outcome, "exit_code": code});
        if let (Err(error), Some(fields)) = (ended, line.as_object_mut()) {
            fields.insert("error".to_owned(), Value::from(error_text(error)));
            fields.insert("hints".to_owned(), json!(error.hints));
        }
        self.emit_line(&line);
    }

    fn emit_line<T: Serialize>(self, what: &T) {
        // Always with milliseconds, so that times sort as text.
        let time = OffsetDateTime::now_utc().format(format_description!(
            "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z"
        ));
        let time = time.unwrap_or_default();
        match serde_json::to_string(&EventLine { time, what }) {
            // If stdout is closed, an apply goes on.
            Ok(text) => drop(self.shell.print_document(&text)),
            Err(error) => tracing::debug!(%error, "an event has no JSON form"),
        }
    }
}

fn kind_word(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Failed => "failed",
        ErrorKind::Usage => "usage",
        ErrorKind::Unhealthy => "unhealthy",
        ErrorKind::Precondition => "precondition",
        ErrorKind::Interrupted => "interrupted",
        ErrorKind::BrokenPipe => "broken_pipe",
    }
}

/// The error and its causes in one text.
fn error_text(error: &CommandError) -> String {
    let causes = error.cause.iter().map(|cause| format!("{cause:#}"));
    let problems = error.problems.iter().map(spec::read::Problem::render);
    causes.chain(problems).collect::<Vec<_>>().join("\n")
}
