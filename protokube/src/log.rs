//! What protokube says of its work: stage lines, one JSON object each, on standard error, which its unit sends to the
//! journal and to the serial console.

use model::report::{StageLine, Status};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use time::OffsetDateTime;

/// Where lines go. Cloning is cheap.
#[derive(Clone)]
pub struct Log(Arc<dyn Fn(&str) + Send + Sync>);

/// A stage line, with the instance that it is about if it is another than this machine.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    line: StageLine,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<&'a str>,
}

impl Log {
    /// Standard error. A line that cannot be written has nowhere else to go.
    pub fn stderr() -> Self {
        Self::to(|line| {
            // One write: lines of other programs on the console do not fall into it.
            let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
        })
    }

    /// To whoever takes lines.
    pub fn to(take: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    /// One line. `detail` must hold nothing secret.
    pub fn say(&self, stage: &str, status: Status, instance: Option<&str>, detail: &str) {
        let now = OffsetDateTime::now_utc();
        let line = StageLine::new(now, "protokube", stage, status, detail);
        let line = serde_json::to_string(&Line { line, instance });
        (self.0)(&line.unwrap_or_default());
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}

/// What a role says. It looks every few seconds, and says only what is new.
#[derive(Debug)]
pub struct Voice {
    log: Log,
    stage: String,
    last: Mutex<Option<(Status, String)>>,
    /// The last error by what it is about.
    errors: Mutex<BTreeMap<String, String>>,
}

impl Voice {
    /// Of this stage, on standard error.
    pub fn of(stage: impl Into<String>) -> Self {
        Self::to(Log::stderr(), stage)
    }

    /// The same, with lines to elsewhere.
    pub fn to(log: Log, stage: impl Into<String>) -> Self {
        Self {
            log,
            stage: stage.into(),
            last: Mutex::default(),
            errors: Mutex::default(),
        }
    }

    /// Says it, unless it was the last thing said.
    pub fn say(&self, status: Status, detail: &str) {
        let mut last = lock(&self.last);
        let said = Some((status, detail.to_owned()));
        if *last != said {
            self.log.say(&self.stage, status, None, detail);
            *last = said;
        }
    }

    /// Something was changed: always said.
    pub fn changed(&self, what: &str) {
        self.log.say(&self.stage, Status::Finished, None, what);
    }

    /// Something failed: said if it is another error than the last about the same.
    pub fn failed(&self, about: &str, error: &anyhow::Error) {
        let text = format!("{about}: {error:#}");
        let mut errors = lock(&self.errors);
        if errors.get(about) != Some(&text) {
            self.log.say(&self.stage, Status::Failed, None, &text);
            errors.insert(about.to_owned(), text);
        }
    }

    /// A failure that stood is over: that is said.
    pub fn over(&self, about: &str) {
        if lock(&self.errors).remove(about).is_some() {
            self.changed(&format!("{about}: over"));
        }
    }

    /// It is well: the same error would be a new one.
    pub fn well(&self, about: &str) {
        lock(&self.errors).remove(about);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_once_until_something_else_was() {
        let lines = Arc::new(Mutex::new(0));
        let count = Arc::clone(&lines);
        let voice = Voice::to(Log::to(move |_| *count.lock().unwrap() += 1), "test");
        for (status, detail, all) in [
            (Status::Started, "waits", 1),
            (Status::Started, "waits", 1),
            (Status::Finished, "", 2),
            (Status::Started, "waits", 3),
        ] {
            voice.say(status, detail);
            assert_eq!(*lines.lock().unwrap(), all);
        }
    }
}
