//! A plan while it is applied: events to the terminal and to the operation log, the lock kept, interrupts heard.

use super::session::Session;
use crate::clock::SystemClock;
use crate::error::{CommandError, Kind};
use crate::interrupt::Interrupts;
use crate::planned::Target;
use crate::state::{Keys, Lock, Operation, StoreJournal, outdated};
use crate::ui::events::Events;
use crate::ui::progress::{Progress, names, seconds};
use aws::AwsWorld;
use aws::store::{Entry, Expect};
use model::cloud::Cloud;
use model::engine::{
    Clock, Event, Options, Outside, Plan, Report, Snapshot, apply, observe_settled,
};
use std::cell::RefCell;
use std::future::pending;
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
        lock: &Lock<'_>,
    ) -> Result<Report, CommandError> {
        let now = OffsetDateTime::now_utc();
        let operation = Operation::begin(self.keys, command, Some(self.target), now);
        let operation = operation.planned(plan, saved);
        operation.write(&self.session.store).await?;
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
        self.session
            .shell
            .note(&format!("\n{words} in {}", seconds(took)));
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

/// Runs `body` under the cluster's lock, and gives the lock back however it ends.
pub async fn locked<T>(
    session: &Session<'_>,
    keys: &Keys,
    command: &str,
    body: impl AsyncFnOnce(&Lock<'_>, &Interrupts) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let shell = session.shell;
    let waits = |who: &str| {
        shell.note(&format!(
            "the cluster is locked by {who}: watching whether they are still at it"
        ));
    };
    let lock = Lock::take(&session.store, keys, command, waits).await?;
    let interrupts = Interrupts::default();
    let keep = async {
        lock.keep().await;
        shell.warning("the lock could not be renewed: nothing more is started");
        pending::<()>().await;
    };
    let first = || {
        shell.note("stopping: what is under way is finished first (Ctrl-C again leaves at once)");
    };
    let ended = tokio::select! {
        biased;
        ended = body(&lock, &interrupts) => ended,
        () = keep => Err(interrupted()),
        () = interrupts.leave(first) => Err(interrupted()),
    };
    lock.release().await;
    ended
}

fn interrupted() -> CommandError {
    CommandError::said(
        Kind::Interrupted,
        "interrupted",
        "the next `kctl update` finds what was made, and goes on from there",
    )
}
