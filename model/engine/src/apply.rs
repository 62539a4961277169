//! Applies a plan: one task owns all state, calls run side by side, each step starts as soon as its last need is done.

use super::decide::{Verdict, decide_next};
use super::diff;
use super::event::Event;
use super::failure::{Class, Failure};
use super::options::{EngineContext, whole_millis};
use super::plan::{Action, Plan, PlanError, Reason};
use super::queue::Queue;
use super::resource::{Id, Resource};
use super::settle::{retry_call, wait_until_shown};
use super::snapshot::Snapshot;
use super::work::{Answer, Work, make_call};
use super::world::{Clock, Journal, Refs, World};
use futures::stream::{FuturesUnordered, StreamExt};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

/// How an apply ended. Every step of the plan is in exactly one of `done`, `failed` and `skipped`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Steps that are done.
    pub done: Vec<Id>,
    /// Steps that failed, and why.
    pub failed: Vec<(Id, Failure)>,
    /// Steps that were not tried, or not seen to their end, and the failed step that they waited for;
    /// `None` after an interrupt.
    pub skipped: Vec<(Id, Option<Id>)>,
    /// True if it was interrupted before everything was done.
    pub interrupted: bool,
    /// Why the journal could not be cleared. Only the next run is slower for it.
    pub journal: Option<Failure>,
}

impl Report {
    /// True if everything was done.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.skipped.is_empty()
    }
}

/// Runs the steps of `plan`, which was made from `snapshot`. Failed steps take down only what waits for
/// them; the rest is finished. Fails as a whole only if the plan is broken.
pub async fn apply<R: Resource, W: World<R>, J: Journal, C: Clock>(
    plan: &Plan<R>,
    snapshot: &Snapshot<R>,
    outside: &EngineContext<'_, W, J, C>,
    events: &mut impl FnMut(Event),
) -> Result<Report, PlanError> {
    plan.check()?;
    let mut run = Run::new(plan, snapshot, outside.clock.now(), events)?;
    run.emit_event(Event::Planned {
        steps: plan.steps.len(),
    });
    if let Err(failure) = record_creations(plan, outside).await {
        run.give_up_journaled(&failure, outside.clock.now());
    }
    run.run_steps(outside).await;
    run.close_journal(snapshot, outside).await;
    Ok(run.report)
}

/// Notes what is about to be created, before the first of it.
async fn record_creations<R: Resource, W, J: Journal, C: Clock>(
    plan: &Plan<R>,
    outside: &EngineContext<'_, W, J, C>,
) -> Result<(), Failure> {
    let ids = creations_to_record(plan);
    if ids.is_empty() {
        return Ok(());
    }
    retry_call(outside.clock, &outside.options, || {
        outside.journal.record(&ids)
    })
    .await
}

fn creations_to_record<R: Resource>(plan: &Plan<R>) -> Vec<Id> {
    let creates = plan
        .steps
        .values()
        .filter(|step| step.action == Action::Create);
    creates
        .filter(|step| step.after.as_ref().is_some_and(Resource::needs_journal))
        .map(|step| step.id.clone())
        .collect()
}

/// The state of one apply.
struct Run<'a, R, E> {
    plan: &'a Plan<R>,
    queue: Queue,
    refs: Rc<Refs>,
    /// Steps that began and have not ended.
    open: BTreeSet<Id>,
    /// Creations that may or may not have happened and that the world would make twice.
    doubtful: BTreeSet<Id>,
    /// Journaled creations that are done, and when.
    made: Vec<(R, Duration)>,
    report: Report,
    began: Duration,
    events: &'a mut E,
}

/// What a step under way came back with.
enum Turned<R> {
    /// It slept, and may be due.
    Awake(Work<R>),
    Answered(Work<R>, Answer<R>),
}

/// Lets a step sleep, or makes its next call if there are `refs` to make it with.
async fn run_turn<R: Resource, W: World<R>, J, C: Clock>(
    outside: &EngineContext<'_, W, J, C>,
    work: Work<R>,
    refs: Option<Rc<Refs>>,
) -> Turned<R> {
    if let Some(refs) = refs {
        let answer = make_call(outside.world, &work, &refs).await;
        return Turned::Answered(work, answer);
    }
    let left = work.due.saturating_sub(outside.clock.now());
    // In short pieces, so that an interrupt is heard.
    outside.clock.sleep(left.min(Duration::from_secs(1))).await;
    Turned::Awake(work)
}

impl<'a, R: Resource, E: FnMut(Event)> Run<'a, R, E> {
    fn new(
        plan: &'a Plan<R>,
        snapshot: &Snapshot<R>,
        now: Duration,
        events: &'a mut E,
    ) -> Result<Self, PlanError> {
        let needs = plan
            .steps
            .iter()
            .map(|(id, step)| (id.clone(), step.needs.clone()))
            .collect();
        Ok(Self {
            plan,
            queue: Queue::new(&needs, &plan.dependency_order()?),
            refs: Rc::new(observed_references(plan, snapshot)),
            open: BTreeSet::new(),
            doubtful: BTreeSet::new(),
            made: Vec::new(),
            report: Report::default(),
            began: now,
            events,
        })
    }

    /// The loop: starts ready steps and takes their results, until none is left or it is interrupted.
    async fn run_steps<W: World<R>, J, C: Clock>(&mut self, outside: &EngineContext<'_, W, J, C>) {
        let mut turns = FuturesUnordered::new();
        let mut due: VecDeque<Work<R>> = VecDeque::new();
        let mut calls = 0;
        loop {
            while calls < outside.options.parallelism.max(1) && !(outside.stop)() {
                let next_work = due.pop_front();
                let Some(work) = next_work.or_else(|| self.start_next(outside.clock.now())) else {
                    break;
                };
                calls += 1;
                turns.push(run_turn(outside, work, Some(Rc::clone(&self.refs))));
            }
            if calls == 0 && (outside.stop)() {
                break;
            }
            let Some(turned) = turns.next().await else {
                break;
            };
            let now = outside.clock.now();
            let work = match turned {
                Turned::Awake(work) => work,
                Turned::Answered(mut work, answer) => {
                    calls -= 1;
                    let verdict = decide_next(&mut work, answer, now, &outside.options);
                    match self.follow_verdict(work, verdict, now) {
                        Some(work) => work,
                        None => continue,
                    }
                }
            };
            if work.due <= now {
                due.push_back(work);
            } else {
                turns.push(run_turn(outside, work, None));
            }
        }
        self.skip_remaining();
    }

    /// The next step that has a call to make. Updates whose late values turn out as they were are done at once.
    fn start_next(&mut self, now: Duration) -> Option<Work<R>> {
        loop {
            let id = self.queue.next_ready()?;
            let step = self.plan.steps.get(&id)?;
            let work = Work::start(step, &self.refs, now);
            self.open.insert(id.clone());
            self.emit_event(Event::Started {
                step: id,
                action: step.action,
                at_ms: whole_millis(now.saturating_sub(self.began)),
            });
            let late = diff::late_sources(&work.want);
            let same = |want: &R| {
                step.before
                    .as_ref()
                    .is_some_and(|have| have.resource == *want)
            };
            if !late.is_empty() {
                let failure = unresolved_failure(&late);
                self.fail_work(&work, failure, now);
            } else if work.want.as_ref().is_some_and(same) {
                self.finish_step(work, now);
            } else {
                return Some(work);
            }
        }
    }

    /// Ends the step, or gives it back to go on.
    fn follow_verdict(
        &mut self,
        work: Work<R>,
        verdict: Verdict,
        now: Duration,
    ) -> Option<Work<R>> {
        if work.doubt.is_some() && work.is_journaled() {
            self.doubtful.insert(work.id.clone());
        } else {
            self.doubtful.remove(&work.id);
        }
        match verdict {
            Verdict::Done => self.finish_step(work, now),
            Verdict::Failed(failure) => self.fail_work(&work, failure, now),
            Verdict::Again(event) => {
                if let Some(event) = event {
                    self.emit_event(event);
                }
                return Some(work);
            }
        }
        None
    }

    fn finish_step(&mut self, work: Work<R>, now: Duration) {
        self.open.remove(&work.id);
        self.queue.finish(&work.id);
        self.report.done.push(work.id.clone());
        self.emit_event(Event::Done {
            step: work.id.clone(),
            action: work.action,
            physical: work.physical.clone(),
            took_ms: whole_millis(now.saturating_sub(work.began)),
        });
        let creates = work.is_journaled();
        if let Some(want) = work.want {
            if creates {
                self.made.push((want, now));
            }
            self.refs.insert(work.id, work.physical, work.attrs);
        }
    }

    fn fail_work(&mut self, work: &Work<R>, failure: Failure, now: Duration) {
        self.open.remove(&work.id);
        self.record_failure(
            &work.id,
            work.action,
            failure,
            now.saturating_sub(work.began),
        );
    }

    fn record_failure(&mut self, id: &Id, action: Action, failure: Failure, took: Duration) {
        self.report.failed.push((id.clone(), failure.clone()));
        self.emit_event(Event::Failed {
            step: id.clone(),
            action,
            failure,
            took_ms: whole_millis(took),
        });
        for waiting in self.queue.fail(id) {
            self.skip_step(waiting, Some(id.clone()));
        }
    }

    fn skip_step(&mut self, step: Id, because: Option<Id>) {
        self.report.skipped.push((step.clone(), because.clone()));
        self.emit_event(Event::Skipped { step, because });
    }

    /// The journal cannot be written: nothing that needs it may begin.
    fn give_up_journaled(&mut self, failure: &Failure, now: Duration) {
        for id in creations_to_record(self.plan) {
            if self.queue.remove(&id) {
                let took = now.saturating_sub(self.began);
                self.record_failure(&id, Action::Create, failure.clone(), took);
            }
        }
    }

    /// What is left after an interrupt.
    fn skip_remaining(&mut self) {
        let begun = std::mem::take(&mut self.open);
        for id in begun.into_iter().chain(self.queue.take_unstarted()) {
            self.report.interrupted = true;
            self.skip_step(id, None);
        }
    }

    /// Closes the journal once the outcome of all that it names is known, and reads show it.
    async fn close_journal<W: World<R>, J: Journal, C: Clock>(
        &mut self,
        snapshot: &Snapshot<R>,
        outside: &EngineContext<'_, W, J, C>,
    ) {
        let there = self.journaled_now(snapshot);
        let settled = outside.clock.now().saturating_sub(outside.options.settle);
        self.made.retain(|(_, at)| *at > settled);
        let known = self.doubtful.is_empty()
            && if self.report.interrupted {
                self.made.is_empty()
            } else {
                wait_until_shown(outside, &self.refs, &self.made).await
            };
        if known {
            let close = || outside.journal.close(&there);
            let closed = retry_call(outside.clock, &outside.options, close);
            self.report.journal = closed.await.err();
        }
    }

    /// The objects there now that the world would make twice.
    fn journaled_now(&self, snapshot: &Snapshot<R>) -> Vec<Id> {
        let seen = snapshot.items.iter().map(|item| &item.resource);
        let seen = seen.filter(|resource| resource.needs_journal());
        let mut there: BTreeSet<Id> = seen.map(Resource::id).collect();
        let created: BTreeSet<Id> = creations_to_record(self.plan).into_iter().collect();
        for id in &self.report.done {
            // The removal of a duplicate has a name of its own, and the other stays.
            if self.plan.steps.get(id).map(|step| step.action) == Some(Action::Delete) {
                there.remove(id);
            } else if created.contains(id) {
                there.insert(id.clone());
            }
        }
        there.into_iter().collect()
    }

    fn emit_event(&mut self, event: Event) {
        (self.events)(event);
    }
}

/// The physical ids of all that was observed, but for duplicates that go.
fn observed_references<R: Resource>(plan: &Plan<R>, snapshot: &Snapshot<R>) -> Refs {
    let extra: BTreeSet<&str> = plan
        .steps
        .values()
        .filter(|step| step.reason == Reason::Duplicate)
        .filter_map(|step| step.before.as_ref())
        .map(|have| have.physical.as_str())
        .collect();
    let refs = Refs::default();
    for item in &snapshot.items {
        if !extra.contains(item.physical.as_str()) {
            let (physical, attrs) = (item.physical.clone(), item.attrs.clone());
            refs.insert(item.resource.id(), physical, attrs);
        }
    }
    refs
}

fn unresolved_failure(late: &[Id]) -> Failure {
    let of: Vec<String> = late.iter().map(Id::to_string).collect();
    Failure {
        class: Class::Invalid,
        call: "filling in late values".to_owned(),
        code: String::new(),
        message: format!("they are not known from {}", of.join(", ")),
        hint: None,
        request_id: None,
    }
}
