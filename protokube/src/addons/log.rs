//! What the addons say: one stage line for each change, and for each error once until it is another or gone.

use model::report::{StageLine, Status};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Takes a line.
type Out = Arc<dyn Fn(StageLine) + Send + Sync>;

/// Says what is new.
#[derive(Clone)]
pub(super) struct Log {
    out: Out,
    /// The last error by what it is about.
    errors: BTreeMap<String, String>,
}

impl Log {
    /// To standard error, which the unit sends to the journal and to the serial console.
    pub fn stderr() -> Self {
        Self::to(Arc::new(|line| {
            if let Ok(line) = serde_json::to_string(&line) {
                // Nobody is left to be told that nobody can be told.
                let _ = writeln!(std::io::stderr(), "{line}");
            }
        }))
    }

    pub fn to(out: Out) -> Self {
        Self {
            out,
            errors: BTreeMap::new(),
        }
    }

    /// Something was changed.
    pub fn changed(&self, what: &str) {
        self.say(Status::Finished, what);
    }

    /// Something failed: said if it is another error than before.
    pub fn failed(&mut self, about: &str, error: &anyhow::Error) {
        let text = format!("{about}: {error:#}");
        if self.errors.get(about) != Some(&text) {
            self.say(Status::Failed, &text);
            self.errors.insert(about.to_owned(), text);
        }
    }

    /// It is well: the same error would be a new one.
    pub fn well(&mut self, about: &str) {
        self.errors.remove(about);
    }

    fn say(&self, status: Status, detail: &str) {
        let now = OffsetDateTime::now_utc().format(&Rfc3339);
        (self.out)(StageLine {
            time: now.unwrap_or_default(),
            source: "protokube".to_owned(),
            stage: "addons".to_owned(),
            status,
            seconds: 0.0,
            detail: detail.to_owned(),
        });
    }
}
