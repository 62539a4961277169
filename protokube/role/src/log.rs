//! Logs stage lines, one JSON object each, to standard error, which the unit sends to the journal and the serial console.

use crate::current_waits::CurrentWaits;
use crate::lock::lock_ignoring_poison;
use node::report::{StageLine, Status};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// Limit of queued lines.
const QUEUED: usize = 1000;

/// A destination of log lines. Cloning is cheap.
#[derive(Clone)]
pub struct Log(Arc<dyn Fn(&str) + Send + Sync>);

/// A stage line, with the id of the instance that it is about if it is not this one.
#[derive(Serialize)]
struct LogLine<'a> {
    #[serde(flatten)]
    line: StageLine,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<&'a str>,
}

impl Log {
    /// Standard error through a queue and a thread, because journal and console may be slow and the API server's probes must not wait.
    /// Lines that do not fit into the queue are counted, and the count is logged.
    pub fn stderr() -> Self {
        // There is one standard error per process, so one queue.
        static QUEUE: OnceLock<Log> = OnceLock::new();
        let queue = QUEUE.get_or_init(|| Self::with_queue(std::io::stderr(), QUEUED));
        queue.clone()
    }

    /// Standard error without a queue, for lines just before the process ends.
    pub fn unqueued_stderr() -> Self {
        Self::from_fn(|line| write_line(&mut std::io::stderr(), line))
    }

    /// A writer with its own thread and a queue of this many lines.
    pub fn with_queue(writer: impl Write + Send + 'static, lines: usize) -> Self {
        let (sender, receiver) = mpsc::sync_channel::<String>(lines);
        let dropped = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&dropped);
        std::thread::spawn(move || write_all(writer, &receiver, &counted));
        Self::from_fn(move |line| {
            if sender.try_send(line.to_owned()).is_err() {
                dropped.fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    /// Passes lines to a function.
    pub fn from_fn(take: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    /// Writes one line. `detail` must not contain secrets.
    pub fn write_stage(&self, stage: &str, status: Status, instance: Option<&str>, detail: &str) {
        (self.0)(&Self::format_line(stage, status, instance, detail));
    }

    fn format_line(stage: &str, status: Status, instance: Option<&str>, detail: &str) -> String {
        let now = OffsetDateTime::now_utc();
        let line = StageLine::new(now, "protokube", stage, status, detail);
        serde_json::to_string(&LogLine { line, instance }).unwrap_or_default()
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}

/// Writes lines until all senders are dropped.
fn write_all(mut writer: impl Write, lines: &mpsc::Receiver<String>, dropped: &AtomicU64) {
    while let Ok(line) = lines.recv() {
        write_line(&mut writer, &line);
        let missing = dropped.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let detail = format!(
                "{missing} lines are missing here, because they could not be written fast enough"
            );
            let line = Log::format_line("log", Status::Failed, None, &detail);
            write_line(&mut writer, &line);
        }
    }
}

/// Writes a line with a single write, so that lines of other programs do not interleave. Errors are ignored: there is no other
/// place to report them.
fn write_line(writer: &mut impl Write, line: &str) {
    let _ = writer.write_all(format!("{line}\n").as_bytes());
}

/// The log of a role, which writes only changes: roles observe every few seconds.
#[derive(Debug)]
pub struct RoleLog {
    log: Log,
    stage: String,
    /// Part of the role, if it has a name: `member b`.
    about: String,
    current_waits: Arc<CurrentWaits>,
    last: Mutex<Option<(Status, String)>>,
    /// Last error by subject.
    errors: Mutex<BTreeMap<String, String>>,
    /// Since when what is tried again has failed, by subject.
    attempts: Mutex<BTreeMap<String, Instant>>,
}

impl RoleLog {
    /// The log of a role on standard error.
    pub fn for_role(stage: impl Into<String>) -> Self {
        Self::with_log(Log::stderr(), stage)
    }

    /// The log of a role with another destination.
    pub fn with_log(log: Log, stage: impl Into<String>) -> Self {
        Self {
            log,
            stage: stage.into(),
            about: String::new(),
            current_waits: Arc::default(),
            last: Mutex::default(),
            errors: Mutex::default(),
            attempts: Mutex::default(),
        }
    }

    /// Also records what the role waits for or refuses in `current_waits`, with this part of the role as subject.
    #[must_use]
    pub fn recording_waits(mut self, current_waits: &Arc<CurrentWaits>, about: &str) -> Self {
        self.current_waits = Arc::clone(current_waits);
        about.clone_into(&mut self.about);
        self
    }

    /// Logs a status, unless it is the same as the last one.
    pub fn report_status(&self, status: Status, detail: &str) {
        if status == Status::Finished || detail.is_empty() {
            self.current_waits.clear_wait(&self.stage, &self.about);
        } else {
            self.current_waits
                .set_wait(&self.stage, &self.about, status, detail);
        }
        let mut last = lock_ignoring_poison(&self.last);
        let current = Some((status, detail.to_owned()));
        if *last != current {
            self.log.write_stage(&self.stage, status, None, detail);
            *last = current;
        }
    }

    /// Clears the wait of the last status, unless another log has replaced it.
    pub fn clear_last_status(&self) {
        if let Some((_, detail)) = &*lock_ignoring_poison(&self.last) {
            self.current_waits
                .clear_wait_if(&self.stage, &self.about, detail);
        }
    }

    /// Logs a change; never suppressed.
    pub fn report_change(&self, what: &str) {
        self.log
            .write_stage(&self.stage, Status::Finished, None, what);
    }

    /// Logs an error, unless it is the same as the last one with this subject, and records it as what the role waits for.
    pub fn report_error(&self, about: &str, error: &anyhow::Error) {
        let message = format!("{error:#}");
        self.current_waits
            .set_wait(&self.stage, about, Status::Failed, &message);
        self.write_error(about, error);
    }

    /// The same for what is tried again, and does not matter until then: the role waits for it only once it has failed for `patience`.
    pub fn report_attempt(&self, about: &str, error: &anyhow::Error, patience: Duration) {
        let since = {
            let mut attempts = lock_ignoring_poison(&self.attempts);
            *attempts
                .entry(about.to_owned())
                .or_insert_with(Instant::now)
        };
        if since.elapsed() >= patience {
            self.report_error(about, error);
        } else {
            self.write_error(about, error);
        }
    }

    fn write_error(&self, about: &str, error: &anyhow::Error) {
        let text = format!("{about}: {error:#}");
        let mut errors = lock_ignoring_poison(&self.errors);
        if errors.get(about) != Some(&text) {
            self.log
                .write_stage(&self.stage, Status::Failed, None, &text);
            errors.insert(about.to_owned(), text);
        }
    }

    /// Clears an error, and logs that it is resolved if there was one.
    pub fn report_resolved(&self, about: &str) {
        self.current_waits.clear_wait(&self.stage, about);
        lock_ignoring_poison(&self.attempts).remove(about);
        if lock_ignoring_poison(&self.errors).remove(about).is_some() {
            self.report_change(&format!("{about}: resolved"));
        }
    }

    /// Clears an error without a log line; the same error would be logged again.
    pub fn clear_error(&self, about: &str) {
        self.current_waits.clear_wait(&self.stage, about);
        lock_ignoring_poison(&self.attempts).remove(about);
        lock_ignoring_poison(&self.errors).remove(about);
    }
}

/// Errors are cleared with the log that checks them.
impl Drop for RoleLog {
    fn drop(&mut self) {
        for about in lock_ignoring_poison(&self.errors).keys() {
            self.current_waits.clear_wait(&self.stage, about);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that blocks until it is released, like a slow serial console.
    struct SlowWriter(mpsc::Receiver<()>, mpsc::Sender<String>);

    impl Write for SlowWriter {
        fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
            // Once the other side is dropped, nothing blocks.
            let _ = self.0.recv();
            let text_sent = self.1.send(String::from_utf8_lossy(text).into_owned());
            text_sent.map_err(std::io::Error::other)?;
            Ok(text.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nobody_waits_for_a_writer_that_stands_still_and_what_is_dropped_is_counted() {
        let (release, gate) = mpsc::channel();
        let (written, lines) = mpsc::channel();
        let log = Log::with_queue(SlowWriter(gate, written), 10);
        // Every call returns, though nothing is written.
        for number in 0..1000 {
            log.write_stage("test", Status::Failed, None, &number.to_string());
        }
        drop(release);
        drop(log);
        let lines: Vec<serde_json::Value> = lines
            .iter()
            .map(|line| serde_json::from_str(&line).unwrap())
            .collect();
        let (own_lines, kept): (Vec<_>, Vec<_>) =
            lines.iter().partition(|line| line["stage"] == "log");
        let missing = own_lines[0]["detail"]
            .as_str()
            .unwrap()
            .split(' ')
            .next()
            .unwrap();
        let missing: usize = missing.parse().unwrap();
        assert_eq!((own_lines.len(), kept.len() + missing), (1, 1000));
        assert!((10..=11).contains(&kept.len()), "{}", kept.len());
    }

    #[test]
    fn what_is_tried_again_is_waited_for_only_once_it_has_failed_for_long() {
        let waits = Arc::new(CurrentWaits::default());
        let role_log = RoleLog::with_log(Log::from_fn(|_| ()), "test").recording_waits(&waits, "");
        let error = anyhow::anyhow!("S3 is slow");
        for (patience, is_waited) in [
            (Duration::MAX, false),
            (Duration::from_mins(1), false),
            (Duration::ZERO, true),
        ] {
            role_log.report_attempt("backups", &error, patience);
            assert_eq!(waits.list_waits().len(), usize::from(is_waited));
        }
        role_log.report_resolved("backups");
        assert!(waits.list_waits().is_empty());
    }

    #[test]
    fn the_same_is_said_once_until_something_else_was() {
        let lines = Arc::new(Mutex::new(0));
        let count = Arc::clone(&lines);
        let role_log =
            RoleLog::with_log(Log::from_fn(move |_| *count.lock().unwrap() += 1), "test");
        for (status, detail, all) in [
            (Status::Started, "waits", 1),
            (Status::Started, "waits", 1),
            (Status::Finished, "", 2),
            (Status::Started, "waits", 3),
        ] {
            role_log.report_status(status, detail);
            assert_eq!(*lines.lock().unwrap(), all);
        }
    }
}
