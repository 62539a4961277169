//! Stages, told as one JSON line each on standard error, which the unit sends to the journal and to the serial
//! console: whoever cannot reach the machine reads there how far it came.

use anyhow::Error;
use model::report::{Stage, StageLine, Status};
use std::io::Write;
use std::time::Instant;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// What a line says at most: journald cuts longer ones, and half a line of JSON is none.
const DETAIL: usize = 4000;

/// The stages of one run.
#[derive(Debug)]
pub struct Stages {
    started: OffsetDateTime,
    over: Vec<Stage>,
    current: Option<(&'static str, Instant)>,
}

impl Stages {
    /// A run that begins now.
    pub fn new() -> Self {
        Self {
            started: OffsetDateTime::now_utc(),
            over: Vec::new(),
            current: None,
        }
    }

    /// When the run began, RFC 3339.
    pub fn started(&self) -> String {
        said(self.started)
    }

    /// Ends the stage before well, if there is one, and begins the next.
    pub fn begin(&mut self, stage: &'static str) {
        self.end();
        tell(stage, Status::Started, 0.0, "");
        self.current = Some((stage, Instant::now()));
    }

    /// Ends the current stage well.
    pub fn end(&mut self) {
        if self.current.is_some() {
            self.close(Status::Finished, "");
        }
    }

    /// Ends the current stage with an error and its causes.
    pub fn failed(&mut self, error: &Error) {
        self.close(Status::Failed, &format!("{error:#}"));
    }

    /// An attempt of the current stage failed; the stage goes on.
    pub fn attempt_failed(&self, cause: &str) {
        let (stage, since) = self.current.unwrap_or(("start", Instant::now()));
        tell(stage, Status::Failed, since.elapsed().as_secs_f64(), cause);
    }

    /// Every stage so far, the current one as begun.
    pub fn all(&self) -> Vec<Stage> {
        let current = self.current.iter().map(|(name, since)| Stage {
            name: (*name).to_owned(),
            status: Status::Started,
            seconds: rounded(since.elapsed().as_secs_f64()),
        });
        self.over.iter().cloned().chain(current).collect()
    }

    fn close(&mut self, status: Status, detail: &str) {
        let (name, since) = self.current.take().unwrap_or(("start", Instant::now()));
        let seconds = since.elapsed().as_secs_f64();
        tell(name, status, seconds, detail);
        self.over.push(Stage {
            name: name.to_owned(),
            status,
            seconds: rounded(seconds),
        });
    }
}

fn tell(stage: &str, status: Status, seconds: f64, detail: &str) {
    let line = StageLine {
        time: said(OffsetDateTime::now_utc()),
        source: "nodeup".to_owned(),
        stage: stage.to_owned(),
        status,
        seconds: rounded(seconds),
        detail: detail.chars().take(DETAIL).collect(),
    };
    // One write: lines of other programs on the console do not fall into it.
    let text = serde_json::to_string(&line).unwrap_or_default() + "\n";
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

fn said(time: OffsetDateTime) -> String {
    time.format(&Rfc3339).unwrap_or_default()
}
