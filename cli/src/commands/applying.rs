//! A plan while it is applied: events to the terminal and to the operation log, the lock kept, interrupts heard.

use super::session::Session;
use crate::clock::SystemClock;
use crate::error::{CommandError, Kind};
use crate::interrupt::Interrupts;
use crate::planned::Target;
use crate::state::{Keys, Lock, Operation, StoreJournal, Terms, life, outdated, store_error};
use crate::ui::events::Events;
use crate::ui::progress::{Progress, names, seconds};
use aws_client::fence::Fenced;
use aws_client::store::{Entry, Expect};
use aws_cloud::AwsWorld;
use cloud::Cloud;
use engine::{Clock, Event, Options, Outside, Plan, Report, Snapshot, apply, observe_settled};
use std::cell::RefCell;
use std::error::Error;
use std::future::pending;
use std::pin::pin;
use std::time::Duration;
use time::OffsetDateTime;

/// How often running steps' times are brought up to date.
const TICK: Duration = Duration::from_millis(100);

/// What a plan is made and applied with.
#[derive(Debug)]
pub struct Work<'a> {
    /// Store and terminal.
    pub session: &'a Session<'a>,
    /// Which cluster.
    pub target: &'a Target,
    /// Its keys in the store.
    pub keys: &'a Keys,
    /// What was listed there.
    pub entries: &'a [Entry],
    /// AWS.
    pub world: &'a AwsWorld,
    /// What is being created.
    pub journal: &'a StoreJournal<'a>,
    /// What signals want.
    pub interrupts: &'a Interrupts,
    /// Who hears of everything in JSON.
    pub events: Option<Events<'a>>,
    /// True if stdout is for programs alone.
    pub programs: bool,
    /// What is written to the store before the first change: key and text.
    pub beforehand: Option<(String, String)>,
}

impl Work<'_> {
    /// The cluster as it is. After an interrupted run this waits until AWS shows what that made.
    pub async fn observe(&self) -> Result<Snapshot<Cloud>, CommandError> {
        let clock = SystemClock::start();
        let outside = Outside {
            world: self.world,
            journal: self.journal,
            clock: &clock,
            options: Options::default(),
            stop: &|| false,
        };
        let mut progress = Progress::new(self.session.shell);
        let mut hear = |event| {
            progress.on(&event);
            self.tell(&event);
        };
        let seen = observe_settled(&outside, &mut hear).await;
        progress.finish();
        seen.map_err(super::look::aws_error)
    }

    fn tell(&self, event: &Event) {
        if let Some(events) = &self.events {
            events.on(event);
        }
    }

    /// Applies a plan and says how it went. An incomplete one is an error after everything that could be done was.
    /// `saved`: the digest of the saved plan that it is.
    pub async fn apply(
        &self,
        command: &str,
        plan: &Plan<Cloud>,
        snapshot: &Snapshot<Cloud>,
        saved: Option<&str>,
        lock: &Lock,
    ) -> Result<Report, CommandError> {
        let now = OffsetDateTime::now_utc();
        let operation = Operation::begin(self.keys, command, Some(self.target), now);
        let operation = operation.planned(plan, saved);
        operation.write(&self.session.store).await?;
        if let Some((key, text)) = &self.beforehand {
            let bytes = text.clone().into_bytes();
            let put = self.session.store.put(key, bytes, Expect::Any);
            put.await.map_err(store_error)?;
        }
        self.interrupts.applying();
        let clock = SystemClock::start();
        let (operation, progress) = (
            RefCell::new(operation),
            RefCell::new(Progress::new(self.session.shell)),
        );
        let outside = Outside {
            world: self.world,
            journal: self.journal,
            clock: &clock,
            options: Options::default(),
            stop: &|| self.interrupts.stopping() || lock.is_lost(),
        };
        let mut hear = |event| {
            operation.borrow_mut().on(&event);
            progress.borrow_mut().on(&event);
            self.tell(&event);
        };
        let applied = tokio::select! {
            biased;
            report = apply(plan, snapshot, &outside, &mut hear) => report,
            () = ticking(&progress) => return Err(interrupted()),
        };
        progress.borrow_mut().finish();
        let took = u64::try_from(clock.now().as_millis()).unwrap_or(u64::MAX);
        let report = applied.map_err(|error| {
            CommandError::new(Kind::Failed, error, "report this: it is a defect of kctl")
        })?;
        let mut operation = operation.into_inner();
        operation.end(outcome(&report), took);
        // The journal and the log are the next holder's: ours stays as it is, running.
        if lock.is_lost() {
            return Ok(report);
        }
        self.close(&operation).await;
        if let Some(events) = &self.events {
            events.applied(&report);
        }
        if let Some(failure) = &report.journal {
            let words = format!(
                "the journal could not be cleared, so the next run waits before it looks: {failure}"
            );
            self.session.shell.warning(&words);
        }
        let words = progress.borrow().tally().words();
        let summary = format!("\n{words} in {}", seconds(took));
        // Of one that is not complete the error says it: that nobody reads the summary must not hide it.
        if self.programs || !report.is_complete() {
            self.session.shell.note(&summary);
        } else {
            self.session.shell.result(&summary)?;
        }
        Ok(report)
    }

    /// The operation's end, and old operations; failing at this does not undo what was done.
    async fn close(&self, operation: &Operation) {
        let store = &self.session.store;
        if let Err(error) = operation.write(store).await {
            self.session
                .shell
                .warning("the operation could not be written to the log");
            self.session.shell.error(&error);
        }
        for key in outdated(self.keys, self.entries) {
            if let Err(error) = store.delete(&key, Expect::Any).await {
                tracing::debug!(%error, key, "could not delete an old operation");
            }
        }
    }

    /// The error of an apply that did not do everything.
    pub fn incomplete(report: &Report, again: &str) -> Option<CommandError> {
        if report.is_complete() {
            return None;
        }
        let steps = report.done.len() + report.failed.len() + report.skipped.len();
        let hint = format!("`{again}` goes on where this ended");
        if report.interrupted {
            let left = report.skipped.iter().map(|(id, _)| id);
            let sentence = format!(
                "interrupted with {} of {steps} changes left: {}",
                report.skipped.len(),
                names(left)
            );
            return Some(CommandError::said(Kind::Interrupted, sentence, hint));
        }
        let failed = report.failed.iter().map(|(id, _)| id);
        let sentence = format!(
            "{} of {steps} changes failed: {}",
            report.failed.len(),
            names(failed)
        );
        Some(CommandError::said(
            Kind::Failed,
            sentence,
            format!("{hint}, once the cause above is gone"),
        ))
    }
}

fn outcome(report: &Report) -> &'static str {
    match (report.is_complete(), report.interrupted) {
        (true, _) => "done",
        (_, true) => "interrupted",
        _ => "failed",
    }
}

async fn ticking(progress: &RefCell<Progress<'_>>) {
    loop {
        tokio::time::sleep(TICK).await;
        progress.borrow_mut().tick();
    }
}

/// Runs `body` under the cluster's lock, waiting for it so long, and gives the lock back however it ends.
pub async fn locked<T>(
    session: &Session<'_>,
    keys: &Keys,
    command: &str,
    wait: Option<Duration>,
    body: impl AsyncFnOnce(&Lock, &Interrupts) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let shell = session.shell;
    let terms = Terms {
        what: command,
        life: life()?,
        wait: wait.unwrap_or_default(),
    };
    let interrupts = Interrupts::default();
    let first = || {
        shell.note("stopping: what is under way is finished first (Ctrl-C again leaves at once)");
    };
    let mut leave = pin!(interrupts.leave(first));
    let lock = tokio::select! {
        biased;
        lock = Box::pin(Lock::take(&session.store, keys, &terms, |words| shell.note(words))) => lock?,
        () = &mut leave => return Err(interrupted()),
    };
    let keep = async {
        let lost = lock.keep().await;
        shell.warning(&format!("{lost}: nothing more is started"));
        pending::<()>().await;
    };
    let ended = tokio::select! {
        biased;
        ended = Box::pin(body(&lock, &interrupts)) => ended,
        () = keep => Err(interrupted()),
        () = leave => Err(interrupted()),
    };
    let ended = if lock.is_lost() {
        ended.map_err(|error| lost(error, keys))
    } else {
        ended
    };
    lock.release().await;
    ended
}

/// What a command came to that lost its lock.
fn lost(error: CommandError, keys: &Keys) -> CommandError {
    let cluster = keys.cluster();
    let sentence = "the lock was lost: nothing further was started";
    let next = format!(
        "see who works on it with `kctl lock status {cluster}`, and repeat the command when they are done"
    );
    match error.cause {
        Some(cause) if cause.chain().any(<dyn Error>::is::<Fenced>) => {
            CommandError::new(Kind::Precondition, cause, next)
        }
        Some(cause) => CommandError::new(Kind::Precondition, cause.context(sentence), next),
        None => CommandError::said(Kind::Precondition, sentence, next),
    }
}

fn interrupted() -> CommandError {
    CommandError::said(
        Kind::Interrupted,
        "interrupted",
        "the next `kctl update` finds what was made, and goes on from there",
    )
}
