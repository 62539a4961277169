//! Runs a plan under the cluster's lock: shows progress, writes the operation log, renews the lock and handles interrupts.

use super::session::Session;
use crate::clock::SystemClock;
use crate::error::{CommandError, ErrorKind};
use crate::interrupt::Interrupts;
use crate::plan_target::ClusterTarget;
use crate::state::{
    ClusterLock, LockEvent, LockKind, LockOptions, Operation, StoreJournal, StoreKeys, lock_life,
    outdated_keys, store_error,
};
use crate::ui::Shell;
use crate::ui::events::Events;
use crate::ui::member_change::MemberChange;
use crate::ui::progress::{Progress, id_list, millis_text};
use aws_client::fence::LockLost;
use aws_client::store::{Entry, Expect};
use aws_cloud::AwsWorld;
use cloud::{Cloud, ObjectContent, S3Object};
use engine::{
    Clock, EngineContext, Event, Options, Plan, Report, Snapshot, apply, observe_settled,
};
use std::cell::RefCell;
use std::error::Error;
use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use time::OffsetDateTime;
use tokio::sync::mpsc::UnboundedReceiver;

/// How often the times of running steps are redrawn.
const TICK: Duration = Duration::from_millis(100);

/// What is needed to observe the cloud and to apply a plan.
#[derive(Debug)]
pub struct PlanContext<'a> {
    pub session: &'a Session<'a>,
    pub target: &'a ClusterTarget,
    /// The keys of the cluster in the store.
    pub keys: &'a StoreKeys,
    /// The listing of the cluster's objects in the store.
    pub entries: &'a [Entry],
    pub world: &'a AwsWorld,
    /// The journal of pending creations.
    pub journal: &'a StoreJournal<'a>,
    pub interrupts: &'a Interrupts,
    /// Writes JSON events to stdout, with `-o events`.
    pub events: Option<Events<'a>>,
    /// True if stdout holds only JSON.
    pub for_programs: bool,
    /// An object to write to the store before the first change: key and text.
    pub write_first: Option<(String, String)>,
    /// Members of etcd that leave before the plan is applied, or come back.
    pub members: Vec<MemberChange>,
}

impl PlanContext<'_> {
    /// Observes the cluster's resources. After an interrupted run this waits until AWS shows what that run created.
    pub async fn observe_cloud(&self) -> Result<Snapshot<Cloud>, CommandError> {
        let clock = SystemClock::start();
        let outside = EngineContext {
            world: self.world,
            journal: self.journal,
            clock: &clock,
            options: Options::default(),
            stop: &|| false,
        };
        let mut progress = Progress::new(self.session.shell);
        let mut on_event = |event| {
            progress.show_event(&event);
            self.emit_event(&event);
        };
        let snapshot = observe_settled(&outside, &mut on_event).await;
        progress.finish();
        snapshot.map_err(super::observe::aws_error)
    }

    fn emit_event(&self, event: &Event) {
        if let Some(events) = &self.events {
            events.emit_event(event);
        }
    }

    /// Applies a plan and prints a summary. `saved` is the digest of the saved plan, if the plan comes from one. Failed steps
    /// are in the report, not an error.
    pub async fn apply_plan(
        &self,
        command: &str,
        plan: &Plan<Cloud>,
        snapshot: &Snapshot<Cloud>,
        saved: Option<&str>,
        lock: &ClusterLock,
    ) -> Result<Report, CommandError> {
        let now = OffsetDateTime::now_utc();
        let operation = Operation::begin(self.keys, command, Some(self.target), now);
        let operation = operation.with_plan(plan, saved);
        operation.write(&self.session.store).await?;
        let completed = find_completed_spec(plan, self.keys);
        for (key, text) in self.write_first.iter().chain(&completed) {
            let bytes = text.clone().into_bytes();
            let put = self.session.store.put(key, bytes, Expect::Any);
            put.await.map_err(store_error)?;
        }
        self.interrupts.start_applying();
        let clock = SystemClock::start();
        let (operation, progress) = (
            RefCell::new(operation),
            RefCell::new(Progress::new(self.session.shell)),
        );
        let outside = EngineContext {
            world: self.world,
            journal: self.journal,
            clock: &clock,
            options: Options::default(),
            stop: &|| self.interrupts.is_stopping() || lock.is_lost(),
        };
        let mut on_event = |event| {
            operation.borrow_mut().record_event(&event);
            progress.borrow_mut().show_event(&event);
            self.emit_event(&event);
        };
        let applied = tokio::select! {
            biased;
            report = apply(plan, snapshot, &outside, &mut on_event) => report,
            () = tick_forever(&progress) => return Err(interrupted_error()),
        };
        progress.borrow_mut().finish();
        let took = u64::try_from(clock.now().as_millis()).unwrap_or(u64::MAX);
        let report = applied.map_err(|error| {
            CommandError::new(
                ErrorKind::Failed,
                error,
                "report this: it is a defect of kctl",
            )
        })?;
        let mut operation = operation.into_inner();
        operation.end(outcome_word(&report), took);
        // The journal and the log belong to the next holder of the lock. This operation stays `running` in the log.
        if lock.is_lost() {
            return Ok(report);
        }
        self.finish_operation(&operation).await;
        if let Some(events) = &self.events {
            events.emit_applied(&report);
        }
        if let Some(failure) = &report.journal {
            let words = format!(
                "the journal could not be cleared, so the next run waits before it looks: {failure}"
            );
            self.session.shell.warning(&words);
        }
        let words = progress.borrow().tally().summary_text();
        let summary = format!("\n{words} in {}", millis_text(took));
        // The summary of an incomplete apply goes to stderr, so that a closed stdout does not replace its error.
        if self.for_programs || !report.is_complete() {
            self.session.shell.note(&summary);
        } else {
            self.session.shell.print_result(&summary)?;
        }
        Ok(report)
    }

    /// Writes the end of the operation and deletes old operations. Failures are only warnings: the changes are made.
    async fn finish_operation(&self, operation: &Operation) {
        let store = &self.session.store;
        if let Err(error) = operation.write(store).await {
            self.session
                .shell
                .warning("the operation could not be written to the log");
            self.session.shell.error(&error);
        }
        for key in outdated_keys(self.keys, self.entries) {
            if let Err(error) = store.delete(&key, Expect::Any).await {
                tracing::debug!(%error, key, "could not delete an old operation");
            }
        }
    }

    /// The error of an incomplete apply; `command` continues it. `None` if the apply is complete.
    pub fn incomplete_error(report: &Report, command: &str) -> Option<CommandError> {
        if report.is_complete() {
            return None;
        }
        let steps = report.done.len() + report.failed.len() + report.skipped.len();
        let hint = format!("`{command}` goes on where this ended");
        if report.interrupted {
            let left = report.skipped.iter().map(|(id, _)| id);
            let sentence = format!(
                "interrupted with {} of {steps} changes left: {}",
                report.skipped.len(),
                id_list(left)
            );
            return Some(CommandError::from_message(
                ErrorKind::Interrupted,
                sentence,
                hint,
            ));
        }
        let failed = report.failed.iter().map(|(id, _)| id);
        let sentence = format!(
            "{} of {steps} changes failed: {}",
            report.failed.len(),
            id_list(failed)
        );
        Some(CommandError::from_message(
            ErrorKind::Failed,
            sentence,
            format!("{hint}, once the cause above is gone"),
        ))
    }
}

/// Key and text of the completed spec, if the plan writes it. What may not be taken back any more is read from it, also after an apply that
/// ended early: so it is written before anything that instances are made from.
fn find_completed_spec(plan: &Plan<Cloud>, keys: &StoreKeys) -> Option<(String, String)> {
    let completed = keys.completed();
    let mut wanted = plan.steps.values().filter_map(|step| step.after.as_ref());
    wanted.find_map(|one| match one {
        Cloud::S3Object(S3Object {
            key,
            content: ObjectContent::Text(text),
        }) if keys.key_below(key) == completed => Some((completed.clone(), text.to_string())),
        _ => None,
    })
}

fn outcome_word(report: &Report) -> &'static str {
    match (report.is_complete(), report.interrupted) {
        (true, _) => "done",
        (_, true) => "interrupted",
        _ => "failed",
    }
}

async fn tick_forever(progress: &RefCell<Progress<'_>>) {
    loop {
        tokio::time::sleep(TICK).await;
        progress.borrow_mut().tick();
    }
}

/// Runs `body` under the cluster's lock, for which it waits up to `wait`. Releases the lock in every case.
pub async fn with_lock<T>(
    session: &Session<'_>,
    keys: &StoreKeys,
    command: &str,
    wait: Option<Duration>,
    body: impl AsyncFnOnce(&ClusterLock, &Interrupts) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let shell = session.shell;
    let terms = LockOptions {
        what: command,
        kind: LockKind::of_command(command),
        life: lock_life()?,
        wait: wait.unwrap_or_default(),
    };
    let interrupts = Interrupts::default();
    let on_first = || {
        shell.note("stopping: what is under way is finished first (Ctrl-C again leaves at once)");
    };
    let mut leave = pin!(interrupts.wait_to_leave(on_first));
    let lock = tokio::select! {
        biased;
        lock = Box::pin(ClusterLock::acquire(&session.store, keys, &terms, |words| shell.note(words))) => lock?,
        () = &mut leave => return Err(interrupted_error()),
    };
    let ended = match lock.start_renewals() {
        Ok(events) => tokio::select! {
            biased;
            () = tell_of_lock(events, shell) => Err(interrupted_error()),
            ended = unless_paused(&lock, Box::pin(body(&lock, &interrupts))) => ended,
            () = leave => Err(interrupted_error()),
        },
        Err(error) => Err(error),
    };
    let ended = if lock.is_lost() {
        ended.map_err(|error| lost_lock_error(error, keys))
    } else {
        ended
    };
    lock.release().await;
    ended
}

/// Prints what becomes of the lock. Never ends.
async fn tell_of_lock(mut events: UnboundedReceiver<LockEvent>, shell: &Shell) {
    while let Some(event) = events.recv().await {
        match event {
            LockEvent::Paused(late) => shell.warning(&format!(
                "{late}: nothing more is started until it is certain that no other process has it"
            )),
            LockEvent::Resumed => {
                shell.note("the lock is held again, and no other process had it: going on");
            }
            LockEvent::Lost(loss) => shell.warning(&format!("{loss}: nothing more is started")),
        }
    }
    pending::<()>().await;
}

/// Runs `body`, but not while the lock is paused: nothing is started then, in AWS or elsewhere.
async fn unless_paused<T>(lock: &ClusterLock, mut body: Pin<Box<impl Future<Output = T>>>) -> T {
    loop {
        lock.wait_out_pause().await;
        let until_pause = poll_fn(|context| {
            if lock.is_paused() {
                return Poll::Ready(None);
            }
            body.as_mut().poll(context).map(Some)
        });
        if let Some(ended) = until_pause.await {
            return ended;
        }
    }
}

/// The error of a command that lost its lock.
fn lost_lock_error(error: CommandError, keys: &StoreKeys) -> CommandError {
    let cluster = keys.cluster();
    let sentence = "the lock was lost: nothing further was started";
    let next = format!(
        "see who works on it with `kctl lock status {cluster}`, and repeat the command when they are done"
    );
    match error.cause {
        Some(cause) if cause.chain().any(<dyn Error>::is::<LockLost>) => {
            CommandError::new(ErrorKind::Precondition, cause, next)
        }
        Some(cause) => CommandError::new(ErrorKind::Precondition, cause.context(sentence), next),
        None => CommandError::from_message(ErrorKind::Precondition, sentence, next),
    }
}

fn interrupted_error() -> CommandError {
    CommandError::from_message(
        ErrorKind::Interrupted,
        "interrupted",
        "the next `kctl update` finds what was made, and goes on from there",
    )
}
