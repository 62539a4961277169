//! A command while it runs, as JSON lines for programs: the first says which version the lines have, the last how
//! the command ended. Additions keep `format`; anything else raises it.

use super::Shell;
use super::plan_json::changes;
use crate::error::{CommandError, Kind, Outcome};
use crate::planned::{Summary, Target};
use crate::saved_plan::Stale;
use cloud::Cloud;
use engine::{Event, Plan, Report};
use serde::Serialize;
use serde_json::{Value, json};
use spec::not_yet::NotYet;
use time::OffsetDateTime;
use time::macros::format_description;

/// The version of the lines.
const FORMAT: u32 = 1;

/// Lines to stdout. If nobody reads any more, what runs goes on.
#[derive(Clone, Copy, Debug)]
pub struct Events<'a> {
    shell: &'a Shell,
}

/// A line: when, and what.
#[derive(Serialize)]
struct Line<'a, T: Serialize> {
    time: String,
    #[serde(flatten)]
    what: &'a T,
}

impl<'a> Events<'a> {
    /// The first line.
    pub fn begin(shell: &'a Shell, command: &str, cluster: &str) -> Self {
        let events = Self { shell };
        events.line(&json!({
            "event": "begun",
            "format": FORMAT,
            "kctl": env!("CARGO_PKG_VERSION"),
            "command": command,
            "cluster": cluster,
        }));
        events
    }

    /// In which account and region.
    pub fn target(self, target: &Target) {
        self.line(&json!({"event": "target", "account": target.account, "region": target.region}));
    }

    /// What nobody does for the cluster yet.
    pub fn not_yet(self, all: &[NotYet]) {
        self.line(&json!({"event": "warnings", "warnings": all}));
    }

    /// What would be done, or will: a line for each step, and one for all of them. `late`: texts in it that will be
    /// others.
    pub fn planned(self, plan: &Plan<Cloud>, late: &[String]) {
        for change in changes(plan) {
            let mut value = serde_json::to_value(change).unwrap_or_default();
            super::plan_json::hide(&mut value, late);
            if let Some(fields) = value.as_object_mut() {
                fields.insert("event".to_owned(), Value::from("change"));
            }
            self.line(&value);
        }
        for kept in &plan.kept {
            let mut value = serde_json::to_value(kept).unwrap_or_default();
            if let Some(fields) = value.as_object_mut() {
                fields.insert("event".to_owned(), Value::from("kept"));
            }
            self.line(&value);
        }
        self.line(&json!({"event": "plan", "summary": Summary::of(plan)}));
    }

    /// Whether a saved plan still applies.
    pub fn stale(self, stale: &Stale) {
        self.line(&json!({"event": "saved_plan", "applies": stale.applies(), "moved": stale}));
    }

    /// One event of the apply.
    pub fn on(self, event: &Event) {
        self.line(event);
    }

    /// How the apply ended.
    pub fn applied(self, report: &Report) {
        self.line(&json!({
            "event": "applied",
            "complete": report.is_complete(),
            "interrupted": report.interrupted,
            "done": report.done.len(),
            "failed": report.failed.len(),
            "skipped": report.skipped.len(),
        }));
    }

    /// The last line.
    pub fn end(self, ended: &Result<Outcome, CommandError>) {
        let (outcome, code) = match ended {
            Ok(Outcome::Fine) => ("fine", Outcome::Fine.exit_code()),
            Ok(pending @ Outcome::ChangesPending) => ("changes_pending", pending.exit_code()),
            Err(error) => (word(error.kind), error.kind.exit_code()),
        };
        let mut line = json!({"event": "ended", "outcome": outcome, "exit_code": code});
        if let (Err(error), Some(fields)) = (ended, line.as_object_mut()) {
            fields.insert("error".to_owned(), Value::from(text(error)));
            fields.insert("hints".to_owned(), json!(error.hints));
        }
        self.line(&line);
    }

    fn line<T: Serialize>(self, what: &T) {
        // Always with milliseconds, so that times are in order as texts too.
        let time = OffsetDateTime::now_utc().format(format_description!(
            "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z"
        ));
        let time = time.unwrap_or_default();
        match serde_json::to_string(&Line { time, what }) {
            // Nobody reads: an apply goes on all the same.
            Ok(text) => drop(self.shell.document(&text)),
            Err(error) => tracing::debug!(%error, "an event has no JSON form"),
        }
    }
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Failed => "failed",
        Kind::Usage => "usage",
        Kind::Unhealthy => "unhealthy",
        Kind::Precondition => "precondition",
        Kind::Interrupted => "interrupted",
        Kind::BrokenPipe => "broken_pipe",
    }
}

/// The error and its causes in one text.
fn text(error: &CommandError) -> String {
    let causes = error.cause.iter().map(|cause| format!("{cause:#}"));
    let problems = error.problems.iter().map(spec::read::Problem::render);
    causes.chain(problems).collect::<Vec<_>>().join("\n")
}
