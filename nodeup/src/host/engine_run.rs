//! Observes, plans and applies changes to the instance.

use super::{ApplyResult, HostContext, LocalHost};
use anyhow::Context as _;
use engine::{Clock, EngineContext, Event, Failure, Id, NoJournal, Options, Plan, World};
use node::host::{HostObject, HostResource};
use std::time::Duration;
use tokio::time::Instant;

/// Brings the instance to the desired state. Returns an error only if observing or planning fails; failures of single changes are
/// in the result, and objects that do not depend on them are changed anyway. Can be killed and repeated at any point.
pub async fn apply_desired(
    desired: Vec<HostResource>,
    context: HostContext,
) -> anyhow::Result<ApplyResult> {
    let tell = context.note.clone();
    let host = context.host.clone();
    let world = LocalHost::new(desired.clone(), context);
    let snapshot = world.observe().await?;
    let plan =
        engine::plan(&desired, &snapshot).context("could not plan the changes of the instance")?;
    world.forget_starts(started_units(&plan)).await?;
    let outside = EngineContext {
        world: &world,
        // Paths and names are unique, so no journal is needed.
        journal: &NoJournal,
        clock: &Elapsed(Instant::now()),
        options: Options::default(),
        stop: &|| host.is_stopped(),
    };
    let mut hear = |event: Event| match event {
        Event::Waiting { step, waiting_for } => {
            tell(&format!("{step} is waiting for {waiting_for}"));
        }
        Event::Retrying { step, failure, .. } => {
            tell(&format!("{step} will be retried: {failure}"));
        }
        _ => {}
    };
    let report = engine::apply(&plan, &snapshot, &outside, &mut hear).await?;
    Ok(to_apply_result(&report))
}

/// Deletes the start records of all units that must be restarted. Needed before applying a part of the desired state, which may
/// change files of a unit without containing the unit.
pub async fn forget_starts(desired: Vec<HostResource>, context: HostContext) -> anyhow::Result<()> {
    let world = LocalHost::new(desired.clone(), context);
    let plan = engine::plan(&desired, &world.observe().await?);
    let plan = plan.context("could not plan the changes of the instance")?;
    Ok(world.forget_starts(started_units(&plan)).await?)
}

/// Names of the units that a plan changes or starts.
fn started_units(plan: &Plan<HostResource>) -> Vec<String> {
    let steps = plan.steps.values().filter_map(|step| step.after.as_ref());
    let units = steps.filter_map(|after| match &after.thing {
        HostObject::Unit(unit) => Some(unit.name.clone()),
        _ => None,
    });
    units.collect()
}

fn to_apply_result(report: &engine::Report) -> ApplyResult {
    let text = |id: &Id| id.to_string();
    let why = |failure: &Failure| match &failure.hint {
        Some(hint) => format!("{failure} ({hint})"),
        None => failure.to_string(),
    };
    let failed = report.failed.iter();
    let skipped = report.skipped.iter();
    ApplyResult {
        changes: report.done.iter().map(text).collect(),
        failed: failed
            .map(|(id, failure)| (text(id), why(failure)))
            .collect(),
        skipped: skipped
            .map(|(id, by)| (text(id), by.as_ref().map(text)))
            .collect(),
    }
}

/// The plan that [`apply_desired`] would apply. It serializes to JSON without secrets.
pub async fn plan_changes(
    desired: Vec<HostResource>,
    context: HostContext,
) -> anyhow::Result<Plan<HostResource>> {
    let world = LocalHost::new(desired.clone(), context);
    let snapshot = world.observe().await?;
    engine::plan(&desired, &snapshot).context("could not plan the changes of the instance")
}

/// Time since the run began, independent of the system clock, which may be set meanwhile.
struct Elapsed(Instant);

impl Clock for Elapsed {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
