//! Runs of kctl against the simulated cloud: one, or as many as it takes.

use super::clock::{SimClock, block_on};
use super::cloud::SimCloud;
use super::judge::{StateDifference, judge_state};
use cloud::Cloud;
use engine::{
    EngineContext, Event, Failure, Id, Options, Plan, PlanError, Report, Snapshot, apply,
    observe_settled, plan,
};
use std::time::Duration;

/// How one run ended.
#[derive(Debug)]
pub enum RunEnd {
    /// The process was killed.
    Killed,
    /// It ran to its end.
    Ran(Plan<Cloud>, Report),
    Blind(Failure),
    /// There is no plan.
    NoPlan(PlanError),
}

/// One `update --yes`: settle, observe, plan, apply.
pub fn run_update(
    cloud: &SimCloud,
    desired: &[Cloud],
    options: Options,
    stop: &dyn Fn() -> bool,
    events: &mut impl FnMut(Event),
) -> RunEnd {
    let snapshot = match observe_cloud(cloud, desired.is_empty(), options, stop, events) {
        Ok(snapshot) => snapshot,
        Err(end) => return *end,
    };
    match plan(desired, &snapshot) {
        Ok(plan) => carry_out(cloud, plan, &snapshot, options, stop, events),
        Err(error) => RunEnd::NoPlan(error),
    }
}

/// The first part of a run, in a new process: what a sweep shows. `deleting`: the cluster is to go, and what holds data with it.
pub fn observe_cloud(
    cloud: &SimCloud,
    deleting: bool,
    options: Options,
    stop: &dyn Fn() -> bool,
    events: &mut impl FnMut(Event),
) -> Result<Snapshot<Cloud>, Box<RunEnd>> {
    cloud.restart();
    cloud.deleting.set(deleting);
    let outside = engine_context(cloud, options, stop);
    let seen = block_on(
        &cloud.clock,
        || cloud.is_dead(),
        observe_settled(&outside, events),
    );
    cloud.clock.pass_time(Duration::ZERO);
    match seen {
        Some(Ok(seen)) => Ok(seen),
        Some(Err(failure)) => Err(Box::new(RunEnd::Blind(failure))),
        None => Err(Box::new(RunEnd::Killed)),
    }
}

/// The second part, in the same process: applies a plan that was made from what [`observe_cloud`] returned.
pub fn carry_out(
    cloud: &SimCloud,
    plan: Plan<Cloud>,
    snapshot: &Snapshot<Cloud>,
    options: Options,
    stop: &dyn Fn() -> bool,
    events: &mut impl FnMut(Event),
) -> RunEnd {
    let outside = engine_context(cloud, options, stop);
    let report = block_on(
        &cloud.clock,
        || cloud.is_dead(),
        apply(&plan, snapshot, &outside, events),
    );
    cloud.clock.pass_time(Duration::ZERO);
    match report {
        Some(Ok(report)) => RunEnd::Ran(plan, report),
        Some(Err(error)) => RunEnd::NoPlan(error),
        None => RunEnd::Killed,
    }
}

fn engine_context<'a>(
    cloud: &'a SimCloud,
    options: Options,
    stop: &'a dyn Fn() -> bool,
) -> EngineContext<'a, SimCloud, SimCloud, SimClock> {
    EngineContext {
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
    cloud.clock.pass_time(lag + Duration::from_secs(5));
    cloud.catch_up();
}

/// What it took until nothing was left to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConvergeResult {
    pub runs: usize,
    /// Number of runs that were killed.
    pub kills: usize,
    /// Of them ended with failed steps.
    pub failed: usize,
    /// Number of steps done.
    pub steps: usize,
    /// Steps that removed a duplicate.
    pub doubles: usize,
    /// The last run asked a person to choose one of two.
    pub asks: bool,
}

/// Runs again and again, as an impatient operator does, until a run finds nothing to do and the judge agrees.
/// If that takes more than so many runs, also says what is wrong.
pub fn run_until_converged(
    cloud: &SimCloud,
    desired: &[Cloud],
    options: Options,
    most: usize,
) -> (ConvergeResult, Option<StateDifference>) {
    let mut took = ConvergeResult::default();
    while took.runs < most {
        took.runs += 1;
        let end = run_update(cloud, desired, options, &|| false, &mut |_| {});
        took.asks = matches!(end, RunEnd::NoPlan(PlanError::BothUsed(_)));
        match end {
            RunEnd::Killed => took.kills += 1,
            RunEnd::Blind(_) | RunEnd::NoPlan(_) => took.failed += 1,
            RunEnd::Ran(plan, report) => {
                took.steps += report.done.len();
                took.failed += usize::from(!report.is_complete());
                let double = |id: &&Id| id.name().contains('#');
                took.doubles += plan.steps.keys().filter(double).count();
                // What reads show may be late, so that only a second look counts.
                if plan.is_empty() {
                    let truth = judge_state(&cloud.state.borrow(), desired);
                    if truth == StateDifference::default() {
                        return (took, None);
                    }
                    settle_reads(cloud);
                    continue;
                }
            }
        }
        // The operator may run it again at once, or after a while.
        let pause = cloud.random().random_time(Duration::from_secs(20));
        cloud.clock.pass_time(pause);
    }
    let truth = judge_state(&cloud.state.borrow(), desired);
    (took, Some(truth))
}
