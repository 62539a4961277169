//! `kctl rolling-update`: shows which instances are out of date and what would stop their replacement; with `--yes`, replaces
//! them. The rules are in the crate `rolling-update`.

mod actions;
mod changes;
mod confirm;
mod differences;
mod names;
mod preview;
mod replace;
mod select;
mod traffic;
mod watch;

use super::apply_plan::with_lock;
use super::inspect::Inspector;
use super::session::Session;
use crate::args::{DrainTimeoutAction, RollingUpdate};
use crate::error::{CommandError, ErrorKind, Outcome};
use rolling_update::{OnDrainTimeout, Settings, find_obstacles};
use spec::read::nearest;
use std::time::Duration;
use watch::{View, Watch};

/// The command's name in the log of operations and for the lock.
const COMMAND: &str = "rolling-update";

/// What a rolling update would find.
pub struct Forecast<'a> {
    watch: Watch<'a>,
    pub view: View,
    /// What would keep it from ending.
    pub stopping: Vec<String>,
}

impl<'a> Forecast<'a> {
    /// Observes the cluster.
    pub async fn observe(
        name: &'a str,
        args: &'a RollingUpdate,
        session: &'a Session<'a>,
    ) -> Result<Self, CommandError> {
        let mut watch = Watch::open(name, args, session).await?;
        let view = watch.observe().await?;
        let (pods, budgets) = (&view.objects.pods, &view.objects.budgets);
        let found = find_obstacles(&view.observed, pods, budgets, &resolve_settings(args));
        let stopping = found.into_iter().filter(|one| one.stops);
        Ok(Self {
            stopping: stopping.map(|one| one.text).collect(),
            watch,
            view,
        })
    }

    pub fn inspector(&self) -> &Inspector<'a> {
        self.watch.inspector()
    }
}

/// Runs the command.
pub async fn run(args: &RollingUpdate, session: &Session<'_>) -> Result<Outcome, CommandError> {
    if let Some(word) = args.target.unexpected_word() {
        return Err(CommandError::usage_error(
            format!("one word too many: {word:?}"),
            "kctl rolling-update [cluster] [NAME]",
        ));
    }
    if args.interactive && !session.shell.can_ask() {
        return Err(CommandError::usage_error(
            "--interactive asks before each instance, and there is no terminal",
            "kctl rolling-update --yes",
        ));
    }
    let name = session.cluster_name(args.target.cluster()).await?;
    let settings = resolve_settings(args);
    let mut watch = Watch::open(&name, args, session).await?;
    for group in watch.reported_only() {
        session.shell.note(&format!(
            "instance group {group} is left out: its rollingUpdate.drainAndTerminate is false"
        ));
    }
    let view = watch.observe().await?;
    check_instance(args, &view)?;
    let budgets = &view.objects.budgets;
    let obstacles = find_obstacles(&view.observed, &view.objects.pods, budgets, &settings);
    if !args.yes {
        let cluster = watch.inspector().cluster();
        let differences = differences::read_differences(cluster, &view, session).await?;
        preview::print(&name, args, &view, &obstacles, &differences, session)?;
        return Ok(Outcome::Fine);
    }
    preview::print_obstacles(&obstacles, session);
    if obstacles.iter().any(|one| one.stops) {
        return Err(CommandError::from_message(
            ErrorKind::Precondition,
            "pods that can never be evicted would stop the rolling update: nothing was changed",
            "change their budgets, or pass --on-drain-timeout force, which deletes such pods after --drain-timeout",
        ));
    }
    let keys = watch.inspector().cluster().state.keys.clone();
    with_lock(
        session,
        &keys,
        COMMAND,
        args.replacement.lock_wait,
        async |lock, interrupts| {
            replace::replace_instances(&mut watch, &settings, lock, interrupts, args, session).await
        },
    )
    .await
}

/// Fails if the only instance to replace is none of the cluster's.
fn check_instance(args: &RollingUpdate, view: &View) -> Result<(), CommandError> {
    let Some(only) = &args.instance else {
        return Ok(());
    };
    let instances = view.observed.instances.iter().map(|one| &one.id);
    let mut all = instances.chain(view.observed.warm.iter().map(|one| &one.id));
    if all.any(|id| id == only) {
        return Ok(());
    }
    let known: Vec<&str> = view
        .fleet
        .instances
        .iter()
        .map(|one| one.instance.id.as_str())
        .collect();
    Err(CommandError::usage_error(
        format!("there is no instance {only:?} in an instance group of the cluster"),
        nearest::hint(only, &known),
    ))
}

fn resolve_settings(args: &RollingUpdate) -> Settings {
    let options = &args.replacement;
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    Settings {
        parallelism: match args.interactive {
            true => 1,
            false => usize::try_from(options.parallelism).unwrap_or(usize::MAX),
        },
        drain_timeout: seconds(options.drain_timeout),
        on_drain_timeout: match options.on_drain_timeout {
            DrainTimeoutAction::Fail => OnDrainTimeout::Fail,
            DrainTimeoutAction::Force => OnDrainTimeout::Force,
            DrainTimeoutAction::Skip => OnDrainTimeout::Skip,
        },
        post_drain_delay: seconds(options.post_drain_delay),
        validation_timeout: seconds(options.validation_timeout),
        cloud_only: args.cloudonly,
    }
}
