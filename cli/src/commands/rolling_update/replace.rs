//! Replaces instances: observes, decides, acts, until nothing is left or something stops it. What is remembered between two
//! processes is on the Nodes and in the record in the state store.

use super::COMMAND;
use super::actions::{ActionError, Actions};
use super::changes::ChangeWatch;
use super::confirm::Confirmation;
use super::watch::{View, Watch};
use crate::args::{ReportFormat, RollingUpdate};
use crate::commands::backups;
use crate::commands::document::print_document;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorContext, ErrorKind, Outcome};
use crate::interrupt::Interrupts;
use crate::state::{ClusterLock, Operation, StoreKeys, store_error};
use crate::ui::Shell;
use crate::ui::health::boot_line;
use crate::ui::rolling_progress::RollingProgress;
use aws_client::store::Expect;
use fleet::Fleet;
use node::config::Role;
use rolling_update::{Action, Decision, Observed, Progress, Record, Settings, State, Stop, decide};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use tokio::time::sleep;

/// Least time between two observations, unless a timeout is so short that several must fit into it.
const INTERVAL: Duration = Duration::from_secs(5);

/// An observation that takes long is repeated after this many times its duration.
const REST: u32 = 2;

/// Replaces the outdated instances under the lock.
pub async fn replace_instances(
    watch: &mut Watch<'_>,
    settings: &Settings,
    lock: &ClusterLock,
    interrupts: &Interrupts,
    args: &RollingUpdate,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let keys = watch.inspector().cluster().state.keys.clone();
    let changes = ChangeWatch::begin(&session.store, &keys).await?;
    let view = watch.observe().await?;
    let record = begin_record(&view, &keys, args, session).await?;
    watch.force_before(record.forced_before);
    interrupts.start_applying();
    let begun = Instant::now();
    let mut operation = Operation::begin(&keys, COMMAND, None, OffsetDateTime::now_utc());
    operation.write(&session.store).await?;
    let mut roll = Roll {
        watch,
        settings,
        lock,
        interrupts,
        record,
        progress: Progress::default(),
        shown: RollingProgress::new(session.shell, !args.interactive),
        confirmation: Confirmation::new(args.interactive),
        shell: session.shell,
        failed: BTreeMap::new(),
        lost: None,
        changes,
        next: resume_hint(&keys, args),
        left_at_stop: Vec::new(),
    };
    let ended = roll.run().await;
    roll.shown.finish();
    let replaced = roll.shown.replaced();
    let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let stop = ended?;
    if lock.is_lost() {
        return Err(CommandError::from_message(
            ErrorKind::Precondition,
            "the lock was lost: nothing further was started",
            format!(
                "repeat `{}`, which goes on where this ended",
                command(&keys, args)
            ),
        ));
    }
    let outcome = match stop {
        None => "done",
        Some(Stop::Interrupted | Stop::Declined { .. }) => "interrupted",
        Some(_) => "failed",
    };
    operation.end(outcome, took);
    if let Err(error) = operation.write(&session.store).await {
        session
            .shell
            .warning("the operation could not be written to the log");
        session.shell.error(&error);
    }
    if stop.is_none() {
        let key = keys.rolling_update();
        let deleted = session.store.delete(&key, Expect::Any).await;
        deleted.map_err(store_error)?;
    }
    report_end(stop.as_ref(), outcome, replaced, took, args, session)?;
    match stop {
        None => Ok(Outcome::Fine),
        Some(stop) => {
            let mut error = stop_error(&stop, replaced, &keys, args);
            error.hints.splice(0..0, roll.left_at_stop);
            Err(error)
        }
    }
}

/// Prints the end: a document for programs, or a line if everything was done.
fn report_end(
    stop: Option<&Stop>,
    outcome: &str,
    replaced: usize,
    took_ms: u64,
    args: &RollingUpdate,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    if args.output != ReportFormat::Table {
        let document = json!({
            "outcome": outcome,
            "replaced": replaced,
            "seconds": took_ms / 1000,
            "reason": stop.map(ToString::to_string),
        });
        print_document(&document, args.output, session.shell)?;
    }
    if stop.is_none() {
        session.shell.print_done(&match replaced {
            0 => "every instance is up to date".to_owned(),
            1 => "replaced 1 instance".to_owned(),
            several => format!("replaced {several} instances"),
        });
    }
    Ok(())
}

/// The command that goes on with it.
fn command(keys: &StoreKeys, args: &RollingUpdate) -> String {
    let cluster = keys.cluster();
    match &args.instance {
        None => format!("kctl rolling-update {cluster} --yes"),
        Some(instance) => format!("kctl delete instance {instance} --name {cluster} --yes"),
    }
}

fn resume_hint(keys: &StoreKeys, args: &RollingUpdate) -> String {
    format!("`{}` goes on where this ended", command(keys, args))
}

/// The record of the rolling update that did not end, or of a new one, written before the first change.
async fn begin_record(
    view: &View,
    keys: &StoreKeys,
    args: &RollingUpdate,
    session: &Session<'_>,
) -> Result<Record, CommandError> {
    let key = keys.rolling_update();
    let found = session.store.get(&key).await.map_err(store_error)?;
    let found = found.and_then(|object| serde_json::from_slice::<Record>(&object.bytes).ok());
    let is_same = |record: &Record| {
        (record.forced_before.is_some(), &record.only) == (args.force, &args.instance)
    };
    if let Some(record) = found.filter(is_same) {
        session.shell.note(&format!(
            "going on with the rolling update {}, which did not end",
            record.operation
        ));
        return Ok(record);
    }
    if replaces_control_planes(view, args) && !args.replacement.no_backup {
        let main = (keys.cluster(), backups::MAIN);
        backups::take_before(COMMAND, main, "--no-backup", session).await?;
    }
    let now = OffsetDateTime::now_utc();
    let is_api = |key: &str| key.starts_with("API/");
    let known = view.observed.problems.iter();
    let known = known.filter(|(key, _)| !is_api(key));
    let record = Record {
        operation: format!("{}-{:x}", now.unix_timestamp(), std::process::id()),
        known_problems: known
            .map(|(key, text)| (key.clone(), text.clone()))
            .collect(),
        forced_before: args.force.then(|| now.unix_timestamp()),
        only: args.instance.clone(),
    };
    let bytes = serde_json::to_vec_pretty(&record).or_failed(
        "the record of the rolling update has no JSON form",
        "report this: it is a defect of kctl",
    )?;
    let put = session.store.put(&key, bytes, Expect::Any);
    put.await.map_err(store_error)?;
    Ok(record)
}

/// True if the rolling update replaces a control plane, and asks the cluster at all.
fn replaces_control_planes(view: &View, args: &RollingUpdate) -> bool {
    let groups = view.observed.groups.iter();
    let groups = groups.filter(|group| group.role == Role::ControlPlane);
    let names: Vec<&String> = groups.map(|group| &group.name).collect();
    let mut instances = view.observed.instances.iter();
    !args.cloudonly
        && instances.any(|one| {
            let is_meant = match &args.instance {
                Some(only) => *only == one.id,
                None => args.force || one.outdated.is_some(),
            };
            is_meant && names.contains(&&one.group)
        })
}

struct Roll<'a, 'w> {
    watch: &'a mut Watch<'w>,
    settings: &'a Settings,
    lock: &'a ClusterLock,
    interrupts: &'a Interrupts,
    record: Record,
    progress: Progress,
    shown: RollingProgress<'a>,
    confirmation: Confirmation,
    shell: &'a Shell,
    /// Actions that failed at their last attempt, with the reason.
    failed: BTreeMap<String, String>,
    /// Since when the cluster could not be observed.
    lost: Option<Instant>,
    changes: ChangeWatch<'a>,
    /// How to go on after an error.
    next: String,
    /// What is left at a stop: how far the replacement came that is not Ready, and detached instances.
    left_at_stop: Vec<String>,
}

impl Roll<'_, '_> {
    /// Runs until the end; the reason if it stopped.
    async fn run(&mut self) -> Result<Option<Stop>, CommandError> {
        loop {
            if self.lock.is_lost() {
                return Ok(None);
            }
            let (looked, resumed) = (Instant::now(), self.lock.times_resumed());
            if let Some(mut view) = self.observe().await? {
                if self.interrupts.is_stopping() {
                    self.progress.stop(Stop::Interrupted);
                }
                view.observed.problems.extend(self.failed.clone());
                let decision = decide(
                    &view.observed,
                    &self.record,
                    self.settings,
                    &mut self.progress,
                );
                if let Some(next) = self.confirmation.find_next(&decision, &view.observed) {
                    if !self.confirmation.ask(next, self.shell).await {
                        let instance = next.id.clone();
                        self.progress.stop(Stop::Declined { instance });
                    }
                    // The cluster may have changed while the question stood.
                    continue;
                }
                let blocked = self.perform_all(&decision, &view, resumed).await;
                self.show(&decision, &view.observed, &blocked);
                if self.lock.times_resumed() != resumed {
                    continue;
                }
                match decision.state {
                    State::Going => {}
                    State::Done => return Ok(None),
                    State::Stopped(stop) => {
                        let boot = boot_text(&stop, &view.fleet);
                        let left = boot.into_iter().chain(detached_text(&view.observed));
                        self.left_at_stop = left.collect();
                        return Ok(Some(stop));
                    }
                }
            }
            let timeout = u64::try_from(self.settings.validation_timeout).unwrap_or_default();
            let interval = INTERVAL.min(Duration::from_secs(timeout) / 4);
            let rest = (looked.elapsed() * REST).max(interval);
            sleep(rest).await;
        }
    }

    /// The cluster as it is now; `None` if it could not be observed, which may last as long as any other problem.
    async fn observe(&mut self) -> Result<Option<View>, CommandError> {
        let observed = async {
            let change = self.changes.find_change().await?;
            Ok((change, self.watch.observe().await?))
        };
        match observed.await {
            Ok((change, view)) => {
                self.lost = None;
                if let Some(reason) = change {
                    self.progress.stop(Stop::Superseded(reason));
                }
                Ok(Some(view))
            }
            Err::<_, CommandError>(error) if error.kind == ErrorKind::Usage => Err(error),
            Err(error) => {
                let since = *self.lost.get_or_insert_with(Instant::now);
                let limit = u64::try_from(self.settings.validation_timeout).unwrap_or_default();
                if since.elapsed() >= Duration::from_secs(limit) || self.interrupts.is_stopping() {
                    return Err(error.with_hint(&self.next));
                }
                self.shown.show_failure(&error);
                Ok(None)
            }
        }
    }

    /// Carries out the actions of a decision; returns the evictions that are refused for now, by pod. After a pause of the lock the
    /// cluster may be another one than the view shows, which was made when the lock had been `resumed` so often: nothing more is done then.
    async fn perform_all(
        &mut self,
        decision: &Decision,
        view: &View,
        resumed: u64,
    ) -> BTreeMap<String, String> {
        let mut blocked = BTreeMap::new();
        let inspector = self.watch.inspector();
        let actions = Actions {
            clients: &inspector.cluster().clients,
            api: inspector.api_client(),
            view,
        };
        let mut failed = BTreeMap::new();
        for action in &decision.actions {
            if self.lock.is_lost() || self.lock.times_resumed() != resumed {
                break;
            }
            match actions.perform(action, &mut blocked).await {
                Ok(()) => {
                    self.progress.succeed(action);
                    self.shown.show_action(action, &view.observed);
                }
                Err(error @ ActionError::Passing(_)) => {
                    failed.insert(format!("action/{}", action.subject()), error.to_string());
                }
                Err(error @ ActionError::Final(_)) => {
                    self.progress.fail(action, &error.to_string());
                }
            }
        }
        self.failed = failed;
        blocked
    }

    fn show(
        &mut self,
        decision: &Decision,
        observed: &Observed,
        blocked: &BTreeMap<String, String>,
    ) {
        let mut waits = decision.waits.clone();
        for action in &decision.actions {
            if let Action::Evict { instance, pods } = action {
                let refused = pods.iter().find_map(|pod| Some((pod, blocked.get(pod)?)));
                if let Some((pod, why)) = refused {
                    waits.insert(instance.clone(), format!("pod {pod} to leave: {why}"));
                }
            }
        }
        self.shown.show_waits(observed, &waits);
    }
}

/// How far a replacement came that is not Ready in time, as its boot report or its console says, and the next step.
fn boot_text(stop: &Stop, fleet: &Fleet) -> Option<String> {
    let Stop::NotReady { instance, .. } = stop else {
        return None;
    };
    let mut all = fleet.instances.iter();
    let status = all.find(|one| one.instance.id == *instance)?;
    let line = boot_line(status.boot.as_ref()?);
    let next = status.next_step();
    let next = next.map_or_else(String::new, |next| format!(": {next}"));
    Some(format!("{instance} is at {line}{next}"))
}

/// The instances that were detached and not replaced yet.
fn detached_text(observed: &Observed) -> Option<String> {
    let detached = observed.instances.iter();
    let detached = detached.filter(|one| one.is_outdated() && !one.attached);
    let ids: Vec<&str> = detached.map(|one| one.id.as_str()).collect();
    let listed = ids.join(", ");
    (!ids.is_empty()).then(|| {
        format!("detached from its Auto Scaling group, running until it is replaced: {listed}")
    })
}

fn stop_error(
    stop: &Stop,
    replaced: usize,
    keys: &StoreKeys,
    args: &RollingUpdate,
) -> CommandError {
    let kind = match stop {
        Stop::Interrupted | Stop::Declined { .. } => ErrorKind::Interrupted,
        Stop::Superseded(_) => ErrorKind::Precondition,
        _ => ErrorKind::Failed,
    };
    let hint = match stop {
        Stop::DrainTimeout { .. } => {
            "the instance is schedulable again. See what keeps the pods with `kubectl get poddisruptionbudgets --all-namespaces`, \
             or pass --on-drain-timeout force or skip"
                .to_owned()
        }
        Stop::NotReady { instance, .. } => format!(
            "`kctl get instances {}` shows how far {instance} came and why; it is kept",
            keys.cluster()
        ),
        Stop::NotGone { instance } => format!(
            "`aws ec2 describe-instances --instance-ids {instance}` shows its state; a lifecycle hook may hold it"
        ),
        Stop::NoCapacity { .. } => {
            "change the instance type or the zones of the group, or its quota in AWS".to_owned()
        }
        Stop::Problem(_) | Stop::Etcd(_) => {
            format!("`kctl validate {}` shows the cluster's problems", keys.cluster())
        }
        Stop::Superseded(_) => format!(
            "look at what is left once that is done: `kctl rolling-update {}`",
            keys.cluster()
        ),
        Stop::Failed(_) | Stop::Interrupted | Stop::Declined { .. } => String::new(),
    };
    let words = if replaced == 1 {
        "1 instance was"
    } else {
        "instances were"
    };
    let count = if replaced == 1 {
        String::new()
    } else {
        format!("{replaced} ")
    };
    let sentence = format!("the rolling update stopped: {stop}; {count}{words} replaced");
    let mut error = CommandError::from_message(kind, sentence, resume_hint(keys, args));
    if !hint.is_empty() {
        error.hints.insert(0, hint);
    }
    error
}
