//! What protokube says of its work: stage lines, one JSON object each, on standard error, which its unit sends to the
//! journal and to the serial console.

use crate::standing::Standing;
use node::report::{StageLine, Status};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use time::OffsetDateTime;

/// Lines that may wait to be written.
const QUEUED: usize = 1000;

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
    /// Standard error, by way of a thread: journal and console may take their time, and nobody waits for them, least of all
    /// the API server's probes. Lines for which there is no room are counted, and their number is told.
    pub fn stderr() -> Self {
        // As standard error is, so is its queue one for the process.
        static QUEUE: OnceLock<Log> = OnceLock::new();
        let queue = QUEUE.get_or_init(|| Self::queued(std::io::stderr(), QUEUED));
        queue.clone()
    }

    /// Standard error without a queue: for what is said before the process ends.
    pub fn direct() -> Self {
        Self::to(|line| write(&mut std::io::stderr(), line))
    }

    /// A writer, by way of a thread of its own and a queue of so many lines.
    pub fn queued(writer: impl Write + Send + 'static, lines: usize) -> Self {
        let (sender, receiver) = mpsc::sync_channel::<String>(lines);
        let dropped = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&dropped);
        std::thread::spawn(move || write_all(writer, &receiver, &counted));
        Self::to(move |line| {
            if sender.try_send(line.to_owned()).is_err() {
                dropped.fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    /// To whoever takes lines.
    pub fn to(take: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    /// One line. `detail` must hold nothing secret.
    pub fn say(&self, stage: &str, status: Status, instance: Option<&str>, detail: &str) {
        (self.0)(&Self::line(stage, status, instance, detail));
    }

    fn line(stage: &str, status: Status, instance: Option<&str>, detail: &str) -> String {
        let now = OffsetDateTime::now_utc();
        let line = StageLine::new(now, "protokube", stage, status, detail);
        serde_json::to_string(&Line { line, instance }).unwrap_or_default()
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}

/// Writes lines until nobody has any more.
fn write_all(mut writer: impl Write, lines: &mpsc::Receiver<String>, dropped: &AtomicU64) {
    while let Ok(line) = lines.recv() {
        write(&mut writer, &line);
        let missing = dropped.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let detail =
                format!("{missing} lines are missing here: more came than could be written");
            let said = Log::line("log", Status::Failed, None, &detail);
            write(&mut writer, &said);
        }
    }
}

/// A line that cannot be written has nowhere else to go. One write: lines of other programs on the console do not fall
/// into it.
fn write(writer: &mut impl Write, line: &str) {
    let _ = writer.write_all(format!("{line}\n").as_bytes());
}

/// What a role says. It looks every few seconds, and says only what is new.
#[derive(Debug)]
pub struct Voice {
    log: Log,
    stage: String,
    /// What of the stage's is said, where that has a name: `member b`.
    about: String,
    standing: Arc<Standing>,
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
            about: String::new(),
            standing: Arc::default(),
            last: Mutex::default(),
            errors: Mutex::default(),
        }
    }

    /// The same, and what it waits for or refuses stands there, about this, until it is over.
    #[must_use]
    pub fn standing_in(mut self, standing: &Arc<Standing>, about: &str) -> Self {
        self.standing = Arc::clone(standing);
        about.clone_into(&mut self.about);
        self
    }

    /// Says it, unless it was the last thing said.
    pub fn say(&self, status: Status, detail: &str) {
        if status == Status::Finished || detail.is_empty() {
            self.standing.over(&self.stage, &self.about);
        } else {
            self.standing
                .stands(&self.stage, &self.about, status, detail);
        }
        let mut last = lock(&self.last);
        let said = Some((status, detail.to_owned()));
        if *last != said {
            self.log.say(&self.stage, status, None, detail);
            *last = said;
        }
    }

    /// What it said last stands no more, if it still does: nobody said anything else of the same since.
    pub fn said_is_over(&self) {
        if let Some((_, detail)) = &*lock(&self.last) {
            self.standing.over_if(&self.stage, &self.about, detail);
        }
    }

    /// Something was changed: always said.
    pub fn changed(&self, what: &str) {
        self.log.say(&self.stage, Status::Finished, None, what);
    }

    /// Something failed: said if it is another error than the last about the same.
    pub fn failed(&self, about: &str, error: &anyhow::Error) {
        let text = format!("{about}: {error:#}");
        let stands = format!("{error:#}");
        self.standing
            .stands(&self.stage, about, Status::Failed, &stands);
        let mut errors = lock(&self.errors);
        if errors.get(about) != Some(&text) {
            self.log.say(&self.stage, Status::Failed, None, &text);
            errors.insert(about.to_owned(), text);
        }
    }

    /// A failure that stood is over: that is said.
    pub fn over(&self, about: &str) {
        self.standing.over(&self.stage, about);
        if lock(&self.errors).remove(about).is_some() {
            self.changed(&format!("{about}: over"));
        }
    }

    /// It is well: the same error would be a new one.
    pub fn well(&self, about: &str) {
        self.standing.over(&self.stage, about);
        lock(&self.errors).remove(about);
    }
}

/// What failed stands as long as somebody looks whether it still does.
impl Drop for Voice {
    fn drop(&mut self) {
        for about in lock(&self.errors).keys() {
            self.standing.over(&self.stage, about);
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that writes nothing until it is let, as a slow serial console does.
    struct Slow(mpsc::Receiver<()>, mpsc::Sender<String>);

    impl Write for Slow {
        fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
            // Once the other side is gone, it lets everything through.
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
        let (release, held) = mpsc::channel();
        let (written, lines) = mpsc::channel();
        let log = Log::queued(Slow(held, written), 10);
        // It comes back from every one of them, though none is written.
        for number in 0..1000 {
            log.say("test", Status::Failed, None, &number.to_string());
        }
        drop(release);
        drop(log);
        let lines: Vec<serde_json::Value> = lines
            .iter()
            .map(|line| serde_json::from_str(&line).unwrap())
            .collect();
        let (told, kept): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line["stage"] == "log");
        let missing = told[0]["detail"]
            .as_str()
            .unwrap()
            .split(' ')
            .next()
            .unwrap();
        let missing: usize = missing.parse().unwrap();
        assert_eq!((told.len(), kept.len() + missing), (1, 1000));
        assert!((10..=11).contains(&kept.len()), "{}", kept.len());
    }

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
