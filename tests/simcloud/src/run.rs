//! Runs of kctl against the simulated cloud: one, or as many as it takes.

use super::clock::{SimClock, block_on};
use super::cloud::SimCloud;
use super::judge::{Truth, judge};
use cloud::Cloud;
use engine::{
    Event, Failure, Id, Options, Outside, Plan, PlanError, Report, Snapshot, apply,
    observe_settled, plan,
};
use std::time::Duration;

/// How one run ended.
#[derive(Debug)]
pub enum End {
    /// It was killed.
    Killed,
    /// It ran to its end.
    Ran(Plan<Cloud>, Report),
    /// It saw nothing.
    Blind(Failure),
    /// There is no plan.
    NoPlan(PlanError),
}

/// One `update --yes`: settle, observe, plan, apply.
pub fn update(
    cloud: &SimCloud,
    desired: &[Cloud],
    options: Options,
    stop: &dyn Fn() -> bool,
    events: &mut impl FnMut(Event),
) -> End {
    let snapshot = match look(cloud, desired.is_empty(), options, stop, events) {
        Ok(snapshot) => snapshot,
        Err(end) => return *end,
    };
    match plan(desired, &snapshot) {
        Ok(plan) => carry_out(cloud, plan, &snapshot, options, stop, events),
        Err(error) => End::NoPlan(error),
    }
}

/// The first part of a run, in a new process: what a sweep shows. `deleting`: the cluster is to go, and what holds data with it.
pub fn look(
    cloud: &SimCloud,
    deleting: bool,
    options: Options,
    stop: &dyn Fn() -> bool,
    events: &mut impl FnMut(Event),
) -> Result<Snapshot<Cloud>, Box<End>> {
    cloud.restart();
    cloud.deleting.set(deleting);
    let outside = outside(cloud, options, stop);
    let seen = block_on(
        &cloud.clock,
        || cloud.is_dead(),
        observe_settled(&outside, events),
    );
    cloud.clock.pass(Duration::ZERO);
    match seen {
        Some(Ok(seen)) => Ok(seen),
        Some(Err(failure)) => Err(Box::new(End::Blind(failure))),
        None => Err(Box::new(End::Killed)),
    }
}

/// The second part, in the same process: applies a plan that was made from what [`look`] returned.
pub fn carry_out(
    cloud: &SimCloud,
    plan: Plan<Cloud>,
    snapshot: &Snapshot<Cloud>,
    options: Options,
    stop: &dyn Fn() -> bool,
    events: &mut impl FnMut(Event),
) -> End {
    let outside = outside(cloud, options, stop);
    let report = block_on(
        &cloud.clock,
        || cloud.is_dead(),
        apply(&plan, snapshot, &outside, events),
    );
    cloud.clock.pass(Duration::ZERO);
    match report {
        Some(Ok(report)) => End::Ran(plan, report),
        Some(Err(error)) => End::NoPlan(error),
        None => End::Killed,
    }
}

fn outside<'a>(
    cloud: &'a SimCloud,
    options: Options,
    stop: &'a dyn Fn() -> bool,
) -> Outside<'a, SimCloud, SimCloud, SimClock> {
    Outside {
        world: cloud,
        journal: cloud,
        clock: &cloud.clock,
        options,
        stop,
    }
}

/// Waits until reads show everything that happened.
pub fn settle_reads(cloud: &SimCloud) {
    let lag = cloud.faults.borrow().lag;
    cloud.clock.pass(lag + Duration::from_secs(5));
    cloud.catch_up();
}

/// What it took until nothing was left to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Converged {
    /// Runs.
    pub runs: usize,
    /// Of them killed.
    pub kills: usize,
    /// Of them ended with failed steps.
    pub failed: usize,
    /// Steps done.
    pub steps: usize,
    /// Steps that removed a duplicate.
    pub doubles: usize,
    /// The last run asked a person to choose one of two.
    pub asks: bool,
}

/// Runs again and again, as an impatient operator does, until a run finds nothing to do and the judge agrees.
/// If that takes more than so many runs, also says what is wrong.
pub fn converge(
    cloud: &SimCloud,
    desired: &[Cloud],
    options: Options,
    most: usize,
) -> (Converged, Option<Truth>) {
    let mut took = Converged::default();
    while took.runs < most {
        took.runs += 1;
        let end = update(cloud, desired, options, &|| false, &mut |_| {});
        took.asks = matches!(end, End::NoPlan(PlanError::BothUsed(_)));
        match end {
            End::Killed => took.kills += 1,
            End::Blind(_) | End::NoPlan(_) => took.failed += 1,
            End::Ran(plan, report) => {
                took.steps += report.done.len();
                took.failed += usize::from(!report.is_complete());
                let double = |id: &&Id| id.name().contains('#');
                took.doubles += plan.steps.keys().filter(double).count();
                // What reads show may be late, so that only a second look counts.
                if plan.is_empty() {
                    let truth = judge(&cloud.state.borrow(), desired);
                    if truth == Truth::default() {
                        return (took, None);
                    }
                    settle_reads(cloud);
                    continue;
                }
            }
        }
        // The operator may run it again at once, or after a while.
        let pause = cloud.rng().time(Duration::from_secs(20));
        cloud.clock.pass(pause);
    }
    let truth = judge(&cloud.state.borrow(), desired);
    (took, Some(truth))
}
