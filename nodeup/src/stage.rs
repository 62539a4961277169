//! Stages, told as one JSON line each on standard error, which the unit sends to the journal and to the serial
//! console: whoever cannot reach the machine reads there how far it came.

use serde_json::json;
use std::io::Write;
use std::time::Instant;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The stages of one run.
#[derive(Debug, Default)]
pub struct Stages {
    current: Option<(&'static str, Instant)>,
}

impl Stages {
    /// Ends the stage before, if there is one, and begins the next.
    pub fn begin(&mut self, stage: &'static str) {
        self.end();
        tell(stage, "started", 0.0, "");
        self.current = Some((stage, Instant::now()));
    }

    /// Ends the current stage well.
    pub fn end(&mut self) {
        if let Some((stage, since)) = self.current.take() {
            tell(stage, "finished", since.elapsed().as_secs_f64(), "");
        }
    }

    /// Ends the current stage with an error and its causes.
    pub fn failed(&mut self, error: &anyhow::Error) {
        let (stage, since) = self.current.take().unwrap_or(("start", Instant::now()));
        tell(
            stage,
            "failed",
            since.elapsed().as_secs_f64(),
            &format!("{error:#}"),
        );
    }
}

/// The line's form is that of user data's stages.
fn tell(stage: &str, status: &str, seconds: f64, detail: &str) {
    let line = json!({
        "time": OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default(),
        "source": "nodeup",
        "stage": stage,
        "status": status,
        "seconds": (seconds * 1000.0).round() / 1000.0,
        "detail": detail,
    });
    let _ = writeln!(std::io::stderr(), "{line}");
}
