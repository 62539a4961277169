//! The simulated cloud: every request takes its time, may fail, and may be the last.

use super::clock::SimClock;
use super::faults::{Faults, Rng};
use super::rules::refused;
use super::state::{Object, Read, State};
use engine::{Class, Clock, Failure, Id, Noted, Resource};
use std::cell::{Cell, RefCell};
use std::future::pending;
use std::time::Duration;

type Effect = Box<dyn FnOnce(&mut State)>;

/// A cloud with one cluster in it, and the state store.
pub struct SimCloud {
    /// Its time.
    pub clock: SimClock,
    /// The truth.
    pub state: RefCell<State>,
    /// What goes wrong.
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
pub struct Times {
    pub now: Duration,
    pub shows: Duration,
    pub slow: Duration,
    pub read: Read,
}

/// A request on the wire. If the process dies now, it may still arrive.
struct Wire<'a, F: FnOnce(&mut State, Times) -> T, T> {
    cloud: &'a SimCloud,
    effect: Option<F>,
}

impl<F: FnOnce(&mut State, Times) -> T, T> Wire<'_, F, T> {
    fn arrive(&mut self) -> Option<T> {
        let effect = self.effect.take()?;
        let times = self.cloud.times();
        Some(effect(&mut self.cloud.state.borrow_mut(), times))
    }
}

impl<F: FnOnce(&mut State, Times) -> T, T> Drop for Wire<'_, F, T> {
    fn drop(&mut self) {
        let under_way = &self.cloud.under_way;
        under_way.set(under_way.get().saturating_sub(1));
        if self.effect.is_some() && self.cloud.dead.get() && self.cloud.rng.percent(50) {
            self.arrive();
        }
    }
}

impl SimCloud {
    /// A cloud with that state, at the time `now`.
    pub fn new(seed: u64, faults: Faults, state: State, now: Duration) -> Self {
        let clock = SimClock::default();
        clock.pass(now);
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

    /// A new process.
    pub fn restart(&self) {
        self.dead.set(false);
        self.calls.set(0);
        self.under_way.set(0);
    }

    /// Chance, from the seed.
    pub fn rng(&self) -> &Rng {
        &self.rng
    }

    fn times(&self) -> Times {
        let (now, faults) = (self.clock.now(), self.faults.borrow());
        Times {
            now,
            shows: now + self.rng.time(faults.lag),
            slow: now + self.rng.time(faults.slow),
            read: Read {
                now,
                behind: faults.flicker,
                seed: self.rng.next(),
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
    pub(super) async fn request<T: 'static>(
        &self,
        call: &str,
        creates: Option<&Id>,
        effect: impl FnOnce(&mut State, Times) -> Result<T, Failure> + 'static,
    ) -> Result<T, Failure> {
        self.calls.set(self.calls.get() + 1);
        let number = self.calls.get();
        self.under_way.set(self.under_way.get() + 1);
        self.peak.set(self.peak.get().max(self.under_way.get()));
        let mut wire = Wire {
            cloud: self,
            effect: Some(effect),
        };
        self.travel().await;
        self.may_die(number, false).await;
        self.turned_away(call, creates)?;
        let lost = self.rng.percent(self.faults.borrow().unknown);
        if lost {
            self.lose(&mut wire);
            self.travel().await;
            return Err(self.failure(Class::Unknown, call, "connection reset"));
        }
        let answer = wire.arrive();
        self.may_die(number, true).await;
        self.travel().await;
        answer.unwrap_or_else(|| Err(self.failure(Class::Unknown, call, "never sent")))
    }

    /// The answer is lost: the effect happened, or never, or comes later.
    fn lose<T: 'static, F>(&self, wire: &mut Wire<'_, F, Result<T, Failure>>)
    where
        F: FnOnce(&mut State, Times) -> Result<T, Failure> + 'static,
    {
        match self.rng.next() % 3 {
            0 => drop(wire.arrive()),
            1 => wire.effect = None,
            _ => {
                let mut times = self.times();
                let delay = self.rng.time(Duration::from_secs(2));
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

    async fn travel(&self) {
        let latency = self.rng.time(self.faults.borrow().latency);
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
        if here || self.rng.percent(chance) {
            self.dead.set(true);
            pending::<()>().await;
        }
    }

    fn turned_away(&self, call: &str, creates: Option<&Id>) -> Result<(), Failure> {
        let faults = self.faults.borrow();
        if self.rng.percent(faults.throttled) {
            return Err(self.failure(Class::Throttled, call, "Rate exceeded"));
        }
        let Some(id) = creates else { return Ok(()) };
        if faults.denied == Some(id.kind()) {
            return Err(refused(Class::Denied, call, id, "not authorized"));
        }
        let state = self.state.borrow();
        let kind = |object: &&Object| {
            object
                .body()
                .is_some_and(|body| body.resource.id().kind() == id.kind())
        };
        let count = state.living().filter(kind).count();
        match faults.quota {
            Some((kind, most)) if kind == id.kind() && count >= most => {
                Err(refused(Class::Quota, call, id, "limit exceeded"))
            }
            _ => Ok(()),
        }
    }

    fn failure(&self, class: Class, call: &str, message: &str) -> Failure {
        let mut failure = refused(class, call, &Id::new("request", "any"), message);
        failure.request_id = Some(format!("req-{}", self.calls.get()));
        failure
    }
}
