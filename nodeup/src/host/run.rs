//! One run over the machine: look, plan, change.

use super::{Applied, Context, LocalHost};
use anyhow::Context as _;
use engine::{Clock, Event, Failure, Id, NoJournal, Options, Outside, Plan, World};
use node::host::{HostResource, Thing};
use std::time::Duration;
use tokio::time::Instant;

/// Makes the machine what is desired. Fails as a whole only if it cannot look or plan; what fails while changing is in
/// the answer, and everything that does not need it is done all the same. Safe to be killed and run again at any point.
pub async fn apply(desired: Vec<HostResource>, context: Context) -> anyhow::Result<Applied> {
    let tell = context.tell.clone();
    let host = context.host.clone();
    let world = LocalHost::new(desired.clone(), context);
    let snapshot = world.observe().await?;
    let plan = engine::plan(&desired, &snapshot).context("could not plan the machine's changes")?;
    world.forget_starts(starts(&plan)).await?;
    let outside = Outside {
        world: &world,
        // Paths and names are unique.
        journal: &NoJournal,
        clock: &Elapsed(Instant::now()),
        options: Options::default(),
        stop: &|| host.is_stopped(),
    };
    let mut hear = |event: Event| match event {
        Event::Waiting { step, waiting_for } => tell(&format!("{step} waits for {waiting_for}")),
        Event::Retrying { step, failure, .. } => tell(&format!("{step} is tried again: {failure}")),
        _ => {}
    };
    let report = engine::apply(&plan, &snapshot, &outside, &mut hear).await?;
    Ok(applied(&report))
}

/// Forgets what the units that have to be started again were started with. For whoever applies a part first: a unit may
/// not be in that part, and what it reads is.
pub async fn forget_starts(desired: Vec<HostResource>, context: Context) -> anyhow::Result<()> {
    let world = LocalHost::new(desired.clone(), context);
    let plan = engine::plan(&desired, &world.observe().await?);
    let plan = plan.context("could not plan the machine's changes")?;
    Ok(world.forget_starts(starts(&plan)).await?)
}

/// Units that a plan starts.
fn starts(plan: &Plan<HostResource>) -> Vec<String> {
    let steps = plan.steps.values().filter_map(|step| step.after.as_ref());
    let units = steps.filter_map(|after| match &after.thing {
        Thing::Unit(unit) => Some(unit.name.clone()),
        _ => None,
    });
    units.collect()
}

fn applied(report: &engine::Report) -> Applied {
    let text = |id: &Id| id.to_string();
    let why = |failure: &Failure| match &failure.hint {
        Some(hint) => format!("{failure} ({hint})"),
        None => failure.to_string(),
    };
    let failed = report.failed.iter();
    let skipped = report.skipped.iter();
    Applied {
        changes: report.done.iter().map(text).collect(),
        failed: failed
            .map(|(id, failure)| (text(id), why(failure)))
            .collect(),
        skipped: skipped
            .map(|(id, by)| (text(id), by.as_ref().map(text)))
            .collect(),
    }
}

/// What [`apply`] would do; serialises to JSON without any secret.
pub async fn plan(
    desired: Vec<HostResource>,
    context: Context,
) -> anyhow::Result<Plan<HostResource>> {
    let world = LocalHost::new(desired.clone(), context);
    let snapshot = world.observe().await?;
    engine::plan(&desired, &snapshot).context("could not plan the machine's changes")
}

/// Time since the run began. Not the machine's: that may be set while this runs.
struct Elapsed(Instant);

impl Clock for Elapsed {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
