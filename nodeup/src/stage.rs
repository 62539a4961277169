//! Logs stages as JSON lines on standard error, which the unit sends to the journal and the serial console. Operators who cannot
//! log in see there how far an instance came.

use crate::lock::lock_ignoring_poison;
use anyhow::Error;
use node::report::{Stage, StageLine, Status};
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Logs a line within the current stage.
pub type StageLogger = Arc<dyn Fn(&str) + Send + Sync>;

/// The stages of one run.
#[derive(Debug)]
pub struct Stages {
    started: OffsetDateTime,
    ended: Vec<Stage>,
    /// Name and start of the current stage, shared with its loggers.
    current: CurrentStage,
}

type CurrentStage = Arc<Mutex<Option<(&'static str, Instant)>>>;

impl Stages {
    /// The stages of a run that begins now.
    pub fn start() -> Self {
        Self {
            started: OffsetDateTime::now_utc(),
            ended: Vec::new(),
            current: Arc::default(),
        }
    }

    /// Start of the run, RFC 3339.
    pub fn started_at_text(&self) -> String {
        self.started.format(&Rfc3339).unwrap_or_default()
    }

    /// Ends the current stage successfully, if there is one, and begins the next.
    pub fn begin_stage(&mut self, stage: &'static str) {
        self.end_stage();
        write_line(stage, Status::Started, 0.0, "");
        *lock_ignoring_poison(&self.current) = Some((stage, Instant::now()));
    }

    /// Ends the current stage successfully.
    pub fn end_stage(&mut self) {
        self.close_stage(Status::Finished, "");
    }

    /// Ends the current stage with an error.
    pub fn fail_stage(&mut self, error: &Error) {
        if lock_ignoring_poison(&self.current).is_none() {
            *lock_ignoring_poison(&self.current) = Some(("start", Instant::now()));
        }
        self.close_stage(Status::Failed, &format!("{error:#}"));
    }

    /// A logger for failed attempts within a stage that continues.
    pub fn attempt_logger(&self) -> StageLogger {
        self.logger_with_status(Status::Failed)
    }

    /// A logger for notes within a stage.
    pub fn note_logger(&self) -> StageLogger {
        self.logger_with_status(Status::Started)
    }

    /// All stages so far; the current one has the status `started`.
    pub fn all_stages(&self) -> Vec<Stage> {
        let current = *lock_ignoring_poison(&self.current);
        let current = current.map(|(name, since)| Stage {
            name: name.to_owned(),
            status: Status::Started,
            seconds: round_to_millis(since.elapsed().as_secs_f64()),
        });
        self.ended.iter().cloned().chain(current).collect()
    }

    fn logger_with_status(&self, status: Status) -> StageLogger {
        let current = self.current.clone();
        Arc::new(move |detail| {
            let running = *lock_ignoring_poison(&current);
            let (stage, since) = running.unwrap_or(("start", Instant::now()));
            write_line(stage, status, since.elapsed().as_secs_f64(), detail);
        })
    }

    fn close_stage(&mut self, status: Status, detail: &str) {
        let Some((name, since)) = lock_ignoring_poison(&self.current).take() else {
            return;
        };
        let seconds = since.elapsed().as_secs_f64();
        write_line(name, status, seconds, detail);
        self.ended.push(Stage {
            name: name.to_owned(),
            status,
            seconds: round_to_millis(seconds),
        });
    }
}

fn write_line(stage: &str, status: Status, seconds: f64, detail: &str) {
    let line = StageLine {
        seconds: round_to_millis(seconds),
        ..StageLine::new(OffsetDateTime::now_utc(), "nodeup", stage, status, detail)
    };
    // A single write, so that lines of other programs on the console do not interleave.
    let text = serde_json::to_string(&line).unwrap_or_default() + "\n";
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn round_to_millis(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}
