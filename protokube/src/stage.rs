//! What a role said last: it looks every few seconds, and says only what is new.

use crate::log::Log;
use model::report::Status;
use std::sync::{Mutex, PoisonError};

/// A role's voice.
#[derive(Debug)]
pub struct Voice {
    log: Log,
    stage: String,
    last: Mutex<Option<(Status, String)>>,
}

impl Voice {
    /// Of this stage, on standard error.
    pub fn of(stage: impl Into<String>) -> Self {
        Self {
            log: Log::stderr(),
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
        self.log.say(&self.stage, status, None, detail);
        *last = said;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_same_is_said_once_until_something_else_was() {
        let lines = Arc::new(Mutex::new(0));
        let count = Arc::clone(&lines);
        let voice = Voice {
            log: Log::to(move |_| *count.lock().unwrap() += 1),
            ..Voice::of("test")
        };
        assert!(voice.say(Status::Started, "waits"));
        assert!(!voice.say(Status::Started, "waits"));
        assert!(voice.say(Status::Finished, ""));
        assert!(voice.say(Status::Started, "waits"));
        assert_eq!(*lines.lock().unwrap(), 3);
    }
}
