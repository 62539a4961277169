//! Rate-limits log lines that callers can cause: one line per cause every few seconds, with the number of suppressed ones.

use crate::log::Log;
use node::report::Status;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Limit of causes; lines of further causes are dropped until others expire.
const CAUSES: usize = 1000;

/// Counts and writes log lines by cause.
pub struct Tally<K> {
    log: Log,
    stage: &'static str,
    every: Duration,
    causes: Mutex<HashMap<K, CauseState>>,
}

struct CauseState {
    told: Instant,
    /// Number of suppressed lines since then.
    more: u64,
    last: CountedLine,
}

#[derive(Clone)]
struct CountedLine {
    status: Status,
    instance: Option<String>,
    detail: String,
}

impl<K: Eq + Hash> Tally<K> {
    /// A tally that writes lines of one cause at least `every` apart.
    pub fn new(log: Log, stage: &'static str, every: Duration) -> Self {
        Self {
            log,
            stage,
            every,
            causes: Mutex::default(),
        }
    }

    /// Writes a line, or counts it.
    pub fn log_or_count(&self, cause: K, status: Status, instance: Option<&str>, detail: &str) {
        let last = CountedLine {
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
                        CauseState {
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
            self.write_counted(&line, more);
        }
    }

    /// Writes the counts of suppressed lines, and forgets expired causes. Must be called regularly.
    pub fn log_counted(&self) {
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
            self.write_counted(&line, more);
        }
    }

    fn write_counted(&self, line: &CountedLine, more: u64) {
        let detail = match more {
            0 => line.detail.clone(),
            more => format!("{} (and {more} similar before)", line.detail),
        };
        let instance = line.instance.as_deref();
        self.log
            .write_stage(self.stage, line.status, instance, &detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// A tally and the details that it wrote.
    fn recording_tally(every: Duration) -> (Tally<&'static str>, Arc<Mutex<Vec<String>>>) {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&lines);
        let log = Log::from_fn(move |line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let detail = line["detail"].as_str().unwrap().to_owned();
            taken.lock().unwrap().push(detail);
        });
        (Tally::new(log, "test", every), lines)
    }

    #[test]
    fn of_a_flood_there_is_one_line_and_then_one_with_their_number() {
        let (quiet, lines) = recording_tally(Duration::from_hours(1));
        for number in 0..100 {
            quiet.log_or_count("a", Status::Failed, None, &format!("a{number}"));
        }
        quiet.log_or_count("b", Status::Failed, None, "b");
        assert_eq!(*lines.lock().unwrap(), ["a0", "b"]);
        quiet.log_counted();
        assert_eq!(lines.lock().unwrap().len(), 2, "it is too early");
        let later = Tally {
            every: Duration::ZERO,
            ..quiet
        };
        later.log_counted();
        assert_eq!(lines.lock().unwrap()[2..], ["a99 (and 98 similar before)"]);
        later.log_counted();
        later.log_counted();
        assert!(later.causes.lock().unwrap().is_empty());
        assert_eq!(lines.lock().unwrap().len(), 3);
    }

    #[test]
    fn causes_without_end_take_no_memory_without_end() {
        let lines = Arc::new(Mutex::new(0));
        let count = Arc::clone(&lines);
        let log = Log::from_fn(move |_| *count.lock().unwrap() += 1);
        let tally = Tally::new(log, "test", Duration::from_hours(1));
        for cause in 0..10 * CAUSES {
            tally.log_or_count(cause, Status::Failed, None, "");
        }
        assert_eq!(tally.causes.lock().unwrap().len(), CAUSES);
        assert_eq!(*lines.lock().unwrap(), CAUSES);
    }
}
