//! The simulated cloud: every request takes its time, may fail, and may be the last.

use super::clock::SimClock;
use super::faults::{Faults, Rng};
use super::rules::refusal_failure;
use super::state::{Object, ReadScope, State};
use engine::{Class, Clock, Failure, Id, Noted, Resource};
use std::cell::{Cell, RefCell};
use std::future::pending;
use std::time::Duration;

type Effect = Box<dyn FnOnce(&mut State)>;

/// A cloud with one cluster in it, and the state store.
pub struct SimCloud {
    pub clock: SimClock,
    /// The true state; reads may lag behind it.
    pub state: RefCell<State>,
    /// The faults that calls meet.
    pub faults: RefCell<Faults>,
    /// Calls so far, of this process.
    pub calls: Cell<u64>,
    /// Most calls under way at once.
    pub peak: Cell<u64>,
    /// The cluster is to go.
    pub(super) deleting: Cell<bool>,
    /// The journal as this process last read or wrote it, and the version that was.
    pub(super) journal: RefCell<(u64, Noted)>,
    rng: Rng,
    under_way: Cell<u64>,
    dead: Cell<bool>,
    /// Effects of requests whose callers gave up on them, and when they happen.
    late: RefCell<Vec<(Duration, Effect)>>,
}

/// When something happens, when reads will show it, how long it takes to be usable or gone, and, of a read, how late it is.
#[derive(Clone, Copy)]
pub struct CallTimes {
    pub now: Duration,
    pub shows: Duration,
    pub slow: Duration,
    pub read: ReadScope,
}

/// A request on the wire. If the process dies now, it may still arrive.
struct PendingCall<'a, F: FnOnce(&mut State, CallTimes) -> T, T> {
    cloud: &'a SimCloud,
    effect: Option<F>,
}

impl<F: FnOnce(&mut State, CallTimes) -> T, T> PendingCall<'_, F, T> {
    fn take_effect(&mut self) -> Option<T> {
        let effect = self.effect.take()?;
        let times = self.cloud.draw_times();
        Some(effect(&mut self.cloud.state.borrow_mut(), times))
    }
}

impl<F: FnOnce(&mut State, CallTimes) -> T, T> Drop for PendingCall<'_, F, T> {
    fn drop(&mut self) {
        let under_way = &self.cloud.under_way;
        under_way.set(under_way.get().saturating_sub(1));
        if self.effect.is_some() && self.cloud.dead.get() && self.cloud.rng.is_within_percent(50) {
            self.take_effect();
        }
    }
}

impl SimCloud {
    /// A cloud with that state, at the time `now`.
    pub fn new(seed: u64, faults: Faults, state: State, now: Duration) -> Self {
        let clock = SimClock::default();
        clock.pass_time(now);
        Self {
            clock,
            state: RefCell::new(state),
            faults: RefCell::new(faults),
            calls: Cell::new(0),
            peak: Cell::new(0),
            deleting: Cell::new(false),
            journal: RefCell::default(),
            rng: Rng::new(seed),
            under_way: Cell::new(0),
            dead: Cell::new(false),
            late: RefCell::new(Vec::new()),
        }
    }

    /// True once the process is dead.
    pub fn is_dead(&self) -> bool {
        self.dead.get()
    }

    /// Forgets what a killed process would have forgotten.
    pub fn restart(&self) {
        self.dead.set(false);
        self.calls.set(0);
        self.under_way.set(0);
    }

    /// Chance, from the seed.
    pub fn random(&self) -> &Rng {
        &self.rng
    }

    fn draw_times(&self) -> CallTimes {
        let (now, faults) = (self.clock.now(), self.faults.borrow());
        CallTimes {
            now,
            shows: now + self.rng.random_time(faults.lag),
            slow: now + self.rng.random_time(faults.slow),
            read: ReadScope {
                now,
                behind: faults.flicker,
                seed: self.rng.next_number(),
            },
        }
    }

    /// Lets everything happen that is due.
    pub fn catch_up(&self) {
        let now = self.clock.now();
        let (due, later) = self.late.take().into_iter().partition(|(at, _)| *at <= now);
        self.late.replace(later);
        let due: Vec<(Duration, Effect)> = due;
        for (_, effect) in due {
            effect(&mut self.state.borrow_mut());
        }
    }

    /// One request. `creates` names the kind that it makes, for denials and quotas.
    pub(super) async fn send_request<T: 'static>(
        &self,
        call: &str,
        creates: Option<&Id>,
        effect: impl FnOnce(&mut State, CallTimes) -> Result<T, Failure> + 'static,
    ) -> Result<T, Failure> {
        self.calls.set(self.calls.get() + 1);
        let number = self.calls.get();
        self.under_way.set(self.under_way.get() + 1);
        self.peak.set(self.peak.get().max(self.under_way.get()));
        let mut wire = PendingCall {
            cloud: self,
            effect: Some(effect),
        };
        self.travel_time().await;
        self.may_die(number, false).await;
        self.turned_away(call, creates)?;
        let lost = self.rng.is_within_percent(self.faults.borrow().unknown);
        if lost {
            self.lose_answer(&mut wire);
            self.travel_time().await;
            return Err(self.new_failure(Class::Unknown, call, "connection reset"));
        }
        let answer = wire.take_effect();
        self.may_die(number, true).await;
        self.travel_time().await;
        answer.unwrap_or_else(|| Err(self.new_failure(Class::Unknown, call, "never sent")))
    }

    /// The answer is lost: the effect happened, or never, or comes later.
    fn lose_answer<T: 'static, F>(&self, wire: &mut PendingCall<'_, F, Result<T, Failure>>)
    where
        F: FnOnce(&mut State, CallTimes) -> Result<T, Failure> + 'static,
    {
        match self.rng.next_number() % 3 {
            0 => drop(wire.take_effect()),
            1 => wire.effect = None,
            _ => {
                let mut times = self.draw_times();
                let delay = self.rng.random_time(Duration::from_secs(2));
                times.now += delay;
                times.shows += delay;
                times.slow += delay;
                if let Some(effect) = wire.effect.take() {
                    let effect = move |state: &mut State| drop(effect(state, times));
                    self.late.borrow_mut().push((times.now, Box::new(effect)));
                }
            }
        }
    }

    async fn travel_time(&self) {
        let latency = self.rng.random_time(self.faults.borrow().latency);
        self.clock.sleep(latency).await;
        if self.dead.get() {
            pending::<()>().await;
        }
        self.catch_up();
    }

    async fn may_die(&self, number: u64, after: bool) {
        let (kill, chance) = {
            let faults = self.faults.borrow();
            (faults.kill, faults.killed)
        };
        let here = kill.is_some_and(|kill| kill.call == number && kill.after == after);
        if here || self.rng.is_within_percent(chance) {
            self.dead.set(true);
            pending::<()>().await;
        }
    }

    fn turned_away(&self, call: &str, creates: Option<&Id>) -> Result<(), Failure> {
        let faults = self.faults.borrow();
        if self.rng.is_within_percent(faults.throttled) {
            return Err(self.new_failure(Class::Throttled, call, "Rate exceeded"));
        }
        let Some(id) = creates else { return Ok(()) };
        if faults.denied == Some(id.kind()) {
            return Err(refusal_failure(Class::Denied, call, id, "not authorized"));
        }
        let state = self.state.borrow();
        let kind = |object: &&Object| {
            object
                .current_body()
                .is_some_and(|body| body.resource.id().kind() == id.kind())
        };
        let count = state.living_objects().filter(kind).count();
        match faults.quota {
            Some((kind, most)) if kind == id.kind() && count >= most => {
                Err(refusal_failure(Class::Quota, call, id, "limit exceeded"))
            }
            _ => Ok(()),
        }
    }

    fn new_failure(&self, class: Class, call: &str, message: &str) -> Failure {
        let mut failure = refusal_failure(class, call, &Id::new("request", "any"), message);
        failure.request_id = Some(format!("req-{}", self.calls.get()));
        failure
    }
}
