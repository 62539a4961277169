//! Rate-limits log lines that callers can cause: one line per cause every few seconds, with the number of suppressed ones.

use node::report::Status;
use protokube_role::lock::lock_ignoring_poison;
use protokube_role::log::Log;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Limit of causes; lines of further causes are dropped until others expire.
const MAX_CAUSES: usize = 1000;

/// Counts and writes log lines by cause.
pub(crate) struct LimitedLog<K> {
    log: Log,
    stage: &'static str,
    interval: Duration,
    causes: Mutex<HashMap<K, CauseCount>>,
}

struct CauseCount {
    /// Time of the last written line.
    written: Instant,
    /// Number of suppressed lines since then.
    suppressed: u64,
    last: CountedLine,
}

#[derive(Clone)]
struct CountedLine {
    status: Status,
    instance: Option<String>,
    detail: String,
}

impl<K: Eq + Hash> LimitedLog<K> {
    /// A log that writes lines of one cause at least `interval` apart.
    pub(crate) fn new(log: Log, stage: &'static str, interval: Duration) -> Self {
        Self {
            log,
            stage,
            interval,
            causes: Mutex::default(),
        }
    }

    /// Writes a line, or counts it.
    pub(crate) fn log_or_count(
        &self,
        cause: K,
        status: Status,
        instance: Option<&str>,
        detail: &str,
    ) {
        let last = CountedLine {
            status,
            instance: instance.map(str::to_owned),
            detail: detail.to_owned(),
        };
        let now = Instant::now();
        let due = {
            let mut causes = lock_ignoring_poison(&self.causes);
            let full = causes.len() >= MAX_CAUSES;
            match causes.get_mut(&cause) {
                Some(known) if now.duration_since(known.written) < self.interval => {
                    known.suppressed = known.suppressed.saturating_add(1);
                    known.last = last;
                    None
                }
                Some(known) => {
                    let more = std::mem::take(&mut known.suppressed);
                    known.written = now;
                    known.last = last.clone();
                    Some((last, more))
                }
                None if full => None,
                None => {
                    let (written, more) = (now, 0);
                    causes.insert(
                        cause,
                        CauseCount {
                            written,
                            suppressed: more,
                            last: last.clone(),
                        },
                    );
                    Some((last, more))
                }
            }
        };
        if let Some((line, more)) = due {
            self.write_counted(&line, more);
        }
    }

    /// Writes the counts of suppressed lines, and forgets expired causes. Must be called regularly.
    pub(crate) fn log_counted(&self) {
        let now = Instant::now();
        let mut due = Vec::new();
        let mut causes = lock_ignoring_poison(&self.causes);
        causes.retain(|_, cause| {
            if now.duration_since(cause.written) < self.interval {
                return true;
            }
            let Some(more) = cause.suppressed.checked_sub(1) else {
                return false;
            };
            due.push((cause.last.clone(), more));
            (cause.written, cause.suppressed) = (now, 0);
            true
        });
        drop(causes);
        for (line, more) in due {
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

    /// A limited log and the details that it wrote.
    fn recording_log(interval: Duration) -> (LimitedLog<&'static str>, Arc<Mutex<Vec<String>>>) {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&lines);
        let log = Log::from_fn(move |line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let detail = line["detail"].as_str().unwrap().to_owned();
            taken.lock().unwrap().push(detail);
        });
        (LimitedLog::new(log, "test", interval), lines)
    }

    #[test]
    fn of_a_flood_there_is_one_line_and_then_one_with_their_number() {
        let (quiet, lines) = recording_log(Duration::from_hours(1));
        for number in 0..100 {
            quiet.log_or_count("a", Status::Failed, None, &format!("a{number}"));
        }
        quiet.log_or_count("b", Status::Failed, None, "b");
        assert_eq!(*lines.lock().unwrap(), ["a0", "b"]);
        quiet.log_counted();
        assert_eq!(lines.lock().unwrap().len(), 2, "it is too early");
        let later = LimitedLog {
            interval: Duration::ZERO,
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
        let limited = LimitedLog::new(log, "test", Duration::from_hours(1));
        for cause in 0..10 * MAX_CAUSES {
            limited.log_or_count(cause, Status::Failed, None, "");
        }
        assert_eq!(limited.causes.lock().unwrap().len(), MAX_CAUSES);
        assert_eq!(*lines.lock().unwrap(), MAX_CAUSES);
    }
}
