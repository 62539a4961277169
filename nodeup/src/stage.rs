//! Stages, told as one JSON line each on standard error, which the unit sends to the journal and to the serial
//! console: whoever cannot reach the machine reads there how far it came.

use anyhow::Error;
use node::report::{Stage, StageLine, Status};
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Who hears what happens within a stage.
pub type Teller = Arc<dyn Fn(&str) + Send + Sync>;

/// The stages of one run.
#[derive(Debug)]
pub struct Stages {
    started: OffsetDateTime,
    over: Vec<Stage>,
    /// Shared with whoever tells something within a stage.
    current: Current,
}

type Current = Arc<Mutex<Option<(&'static str, Instant)>>>;

impl Stages {
    /// A run that begins now.
    pub fn start() -> Self {
        Self {
            started: OffsetDateTime::now_utc(),
            over: Vec::new(),
            current: Arc::default(),
        }
    }

    /// When the run began, RFC 3339.
    pub fn started(&self) -> String {
        self.started.format(&Rfc3339).unwrap_or_default()
    }

    /// Ends the stage before well, if there is one, and begins the next.
    pub fn begin(&mut self, stage: &'static str) {
        self.end();
        tell(stage, Status::Started, 0.0, "");
        *lock(&self.current) = Some((stage, Instant::now()));
    }

    /// Ends the current stage well.
    pub fn end(&mut self) {
        self.close(Status::Finished, "");
    }

    /// Ends the current stage with an error and its causes.
    pub fn failed(&mut self, error: &Error) {
        if lock(&self.current).is_none() {
            *lock(&self.current) = Some(("start", Instant::now()));
        }
        self.close(Status::Failed, &format!("{error:#}"));
    }

    /// Tells of attempts that failed, in a stage that goes on.
    pub fn attempts(&self) -> Teller {
        self.teller(Status::Failed)
    }

    /// Tells of what a stage does besides, or leaves out.
    pub fn notes(&self) -> Teller {
        self.teller(Status::Started)
    }

    /// Every stage so far, the current one as begun.
    pub fn all(&self) -> Vec<Stage> {
        let current = *lock(&self.current);
        let current = current.map(|(name, since)| Stage {
            name: name.to_owned(),
            status: Status::Started,
            seconds: rounded(since.elapsed().as_secs_f64()),
        });
        self.over.iter().cloned().chain(current).collect()
    }

    fn teller(&self, status: Status) -> Teller {
        let current = self.current.clone();
        Arc::new(move |detail| {
            let of = *lock(&current);
            let (stage, since) = of.unwrap_or(("start", Instant::now()));
            tell(stage, status, since.elapsed().as_secs_f64(), detail);
        })
    }

    fn close(&mut self, status: Status, detail: &str) {
        let Some((name, since)) = lock(&self.current).take() else {
            return;
        };
        let seconds = since.elapsed().as_secs_f64();
        tell(name, status, seconds, detail);
        self.over.push(Stage {
            name: name.to_owned(),
            status,
            seconds: rounded(seconds),
        });
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tell(stage: &str, status: Status, seconds: f64, detail: &str) {
    let line = StageLine {
        seconds: rounded(seconds),
        ..StageLine::new(OffsetDateTime::now_utc(), "nodeup", stage, status, detail)
    };
    // One write: lines of other programs on the console do not fall into it.
    let text = serde_json::to_string(&line).unwrap_or_default() + "\n";
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}
