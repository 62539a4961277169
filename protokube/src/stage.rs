//! What protokube says: one JSON line on standard error each time something begins, ends, or fails in another way than before. The
//! unit sends them to the journal and to the serial console.

use model::report::{StageLine, Status};
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Writes one line.
pub fn tell(stage: &str, status: Status, seconds: f64, detail: &str) {
    let line = StageLine {
        time: OffsetDateTime::now_utc()
            .format(&Rfc3339)
            .unwrap_or_default(),
        source: "protokube".to_owned(),
        stage: stage.to_owned(),
        status,
        seconds: (seconds * 1000.0).round() / 1000.0,
        detail: detail.to_owned(),
    };
    if let Ok(line) = serde_json::to_string(&line) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// What a stage said last: it looks every few seconds, and says only what is new.
#[derive(Debug)]
pub struct Voice {
    stage: String,
    last: Mutex<Option<(Status, String)>>,
}

impl Voice {
    /// Of this stage.
    pub fn of(stage: impl Into<String>) -> Self {
        Self {
            stage: stage.into(),
            last: Mutex::default(),
        }
    }

    /// Says it, unless it was the last thing said; true if it was said.
    pub fn say(&self, status: Status, detail: &str) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let said = Some((status, detail.to_owned()));
        if *last == said {
            return false;
        }
        tell(&self.stage, status, 0.0, detail);
        *last = said;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_once_until_something_else_was() {
        let voice = Voice::of("test");
        assert!(voice.say(Status::Started, "waits"));
        assert!(!voice.say(Status::Started, "waits"));
        assert!(voice.say(Status::Finished, ""));
        assert!(voice.say(Status::Started, "waits"));
    }
}
