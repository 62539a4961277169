//! Lines that others can cause at will: of one cause there is one line at most every few seconds, with how many there were.

use crate::log::Log;
use node::report::Status;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Causes that are told apart at once; of further ones nothing is told until others are over.
const CAUSES: usize = 1000;

/// What is told of each cause.
pub struct Tally<K> {
    log: Log,
    stage: &'static str,
    every: Duration,
    causes: Mutex<HashMap<K, Cause>>,
}

struct Cause {
    told: Instant,
    /// Since then.
    more: u64,
    last: Line,
}

#[derive(Clone)]
struct Line {
    status: Status,
    instance: Option<String>,
    detail: String,
}

impl<K: Eq + Hash> Tally<K> {
    /// Lines of one cause are at least `every` apart.
    pub fn new(log: Log, stage: &'static str, every: Duration) -> Self {
        Self {
            log,
            stage,
            every,
            causes: Mutex::default(),
        }
    }

    /// Tells it, or counts it.
    pub fn say(&self, cause: K, status: Status, instance: Option<&str>, detail: &str) {
        let last = Line {
            status,
            instance: instance.map(str::to_owned),
            detail: detail.to_owned(),
        };
        let now = Instant::now();
        let told = {
            let mut causes = self.causes.lock().unwrap_or_else(PoisonError::into_inner);
            let full = causes.len() >= CAUSES;
            match causes.get_mut(&cause) {
                Some(known) if now.duration_since(known.told) < self.every => {
                    known.more = known.more.saturating_add(1);
                    known.last = last;
                    None
                }
                Some(known) => {
                    let more = std::mem::take(&mut known.more);
                    known.told = now;
                    known.last = last.clone();
                    Some((last, more))
                }
                None if full => None,
                None => {
                    let (told, more) = (now, 0);
                    causes.insert(
                        cause,
                        Cause {
                            told,
                            more,
                            last: last.clone(),
                        },
                    );
                    Some((last, more))
                }
            }
        };
        if let Some((line, more)) = told {
            self.tell(&line, more);
        }
    }

    /// Tells what was counted and not told since, and forgets causes that are over. To be called now and then.
    pub fn catch_up(&self) {
        let now = Instant::now();
        let mut told = Vec::new();
        let mut causes = self.causes.lock().unwrap_or_else(PoisonError::into_inner);
        causes.retain(|_, cause| {
            if now.duration_since(cause.told) < self.every {
                return true;
            }
            let Some(more) = cause.more.checked_sub(1) else {
                return false;
            };
            told.push((cause.last.clone(), more));
            (cause.told, cause.more) = (now, 0);
            true
        });
        drop(causes);
        for (line, more) in told {
            self.tell(&line, more);
        }
    }

    fn tell(&self, line: &Line, more: u64) {
        let detail = match more {
            0 => line.detail.clone(),
            more => format!("{} (and {more} like it before)", line.detail),
        };
        let instance = line.instance.as_deref();
        self.log.say(self.stage, line.status, instance, &detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// A tally and the details that it told.
    fn tally(every: Duration) -> (Tally<&'static str>, Arc<Mutex<Vec<String>>>) {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&lines);
        let log = Log::to(move |line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let detail = line["detail"].as_str().unwrap().to_owned();
            taken.lock().unwrap().push(detail);
        });
        (Tally::new(log, "test", every), lines)
    }

    #[test]
    fn of_a_flood_there_is_one_line_and_then_one_with_their_number() {
        let (quiet, lines) = tally(Duration::from_hours(1));
        for number in 0..100 {
            quiet.say("a", Status::Failed, None, &format!("a{number}"));
        }
        quiet.say("b", Status::Failed, None, "b");
        assert_eq!(*lines.lock().unwrap(), ["a0", "b"]);
        quiet.catch_up();
        assert_eq!(lines.lock().unwrap().len(), 2, "it is too early");
        let later = Tally {
            every: Duration::ZERO,
            ..quiet
        };
        later.catch_up();
        assert_eq!(lines.lock().unwrap()[2..], ["a99 (and 98 like it before)"]);
        later.catch_up();
        later.catch_up();
        assert!(later.causes.lock().unwrap().is_empty());
        assert_eq!(lines.lock().unwrap().len(), 3);
    }

    #[test]
    fn causes_without_end_take_no_memory_without_end() {
        let lines = Arc::new(Mutex::new(0));
        let count = Arc::clone(&lines);
        let log = Log::to(move |_| *count.lock().unwrap() += 1);
        let tally = Tally::new(log, "test", Duration::from_hours(1));
        for cause in 0..10 * CAUSES {
            tally.say(cause, Status::Failed, None, "");
        }
        assert_eq!(tally.causes.lock().unwrap().len(), CAUSES);
        assert_eq!(*lines.lock().unwrap(), CAUSES);
    }
}
