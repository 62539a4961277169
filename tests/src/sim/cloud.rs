//! The simulated cloud as the engine sees it: every method is a few requests, every request may fail or be the last.

use super::clock::SimClock;
use super::faults::{Faults, Rng};
use super::rules::{
    Naming, blocker, goes_with, half_made, has_late, naming, needs_usable, refused, rival,
    slow_end, slow_start,
};
use super::state::{Body, Object, State, physical_refs};
use model::cloud::Cloud;
use model::engine::{
    Attrs, Class, Clock, Failure, Id, Observed, Put, Refs, Removed, Resource, Snapshot, World,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
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
    rng: Rng,
    under_way: Cell<u64>,
    dead: Cell<bool>,
    /// Effects of requests whose callers gave up on them, and when they happen.
    late: RefCell<Vec<(Duration, Effect)>>,
}

/// When something happens, when reads will show it, and how long it takes to be usable or gone.
#[derive(Clone, Copy)]
pub struct Times {
    pub now: Duration,
    pub shows: Duration,
    pub slow: Duration,
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

    /// References to what reads do not show yet are refused now and then; to what is gone, or not usable, always.
    fn check_refs(&self, want: &Cloud, refs: &BTreeSet<String>) -> Result<(), Failure> {
        let (state, now) = (self.state.borrow(), self.clock.now());
        for physical in refs {
            let object = state
                .object(physical)
                .filter(|object| object.body().is_some());
            let ready = object.is_some_and(|object| {
                let hidden =
                    !object.is_shown(now) && self.rng.percent(self.faults.borrow().not_yet);
                !hidden && (object.usable <= now || !needs_usable(want))
            });
            if !ready {
                let message = format!("{physical} does not exist");
                return Err(refused(Class::NotYet, "put", &want.id(), &message));
            }
        }
        Ok(())
    }

    async fn create(&self, want: &Cloud, refs: &Refs) -> Result<Put, Failure> {
        let refs = physical_refs(want, refs);
        self.check_refs(want, &refs)?;
        let body = body(want, refs);
        let id = want.id();
        self.request("create", Some(&id), move |state, times| {
            create(state, body, times)
        })
        .await
    }

    async fn change(&self, want: &Cloud, physical: &str, refs: &Refs) -> Result<Put, Failure> {
        let refs = physical_refs(want, refs);
        self.check_refs(want, &refs)?;
        let (body, physical) = (body(want, refs), physical.to_owned());
        self.request("change", None, move |state, times| {
            change(state, &physical, body, times)
        })
        .await
    }
}

fn body(want: &Cloud, refs: BTreeSet<String>) -> Body {
    assert!(!has_late(want), "{} was put with late values", want.id());
    Body {
        resource: want.clone(),
        attrs: Attrs::new(),
        refs,
    }
}

fn create(state: &mut State, mut body: Body, times: Times) -> Result<Put, Failure> {
    let naming = naming(&body);
    let id = body.resource.id();
    let twin = state.objects.iter().find(|object| {
        object
            .lingering(times.now)
            .is_some_and(|other| match &naming {
                Naming::Anonymous => false,
                Naming::Token | Naming::Overwrites => !object.foreign && other.resource.id() == id,
                Naming::Taken(_) => super::rules::naming(other) == naming,
            })
    });
    let Some(twin) = twin else {
        let physical_attrs = first_attrs(&body.resource, state.objects.len());
        body.attrs = physical_attrs;
        let slow = slow_start(&body.resource);
        let object = state.add(body, false, times.now, times.shows);
        if slow.is_some() {
            object.usable = times.slow;
        }
        return Ok(put(object, times.now));
    };
    let same = twin
        .body()
        .is_some_and(|twin| twin.resource == body.resource && twin.refs == body.refs);
    let physical = twin.physical.clone();
    match naming {
        Naming::Overwrites => change(state, &physical, body, times),
        Naming::Token if same => Ok(put(twin, times.now)),
        _ => Err(refused(Class::Exists, "create", &id, "already exists")),
    }
}

fn change(state: &mut State, physical: &str, mut body: Body, times: Times) -> Result<Put, Failure> {
    let id = body.resource.id();
    let gone = || refused(Class::Gone, "change", &id, "does not exist");
    if let Some(other) = rival(state, physical, &body, times.now) {
        let message = format!("{} stands there already", other.physical);
        return Err(refused(Class::Invalid, "change", &id, &message));
    }
    let object = state.object_mut(physical).ok_or_else(gone)?;
    let before = object.body().ok_or_else(gone)?;
    body.attrs = before.attrs.clone();
    if let Some(version) = body.attrs.get_mut("latest_version") {
        *version = (version.parse::<u64>().unwrap_or_default() + 1).to_string();
    }
    object.change(body, times.shows);
    Ok(put(object, times.now))
}

fn first_attrs(resource: &Cloud, serial: usize) -> Attrs {
    let attr = |name: &str, value: String| (name.to_owned(), value);
    match resource {
        Cloud::LaunchTemplate(_) => Attrs::from([attr("latest_version", "1".to_owned())]),
        Cloud::Lb(balancer) => Attrs::from([
            attr(
                "dns_name",
                format!("{}-{serial}.elb.example.com", balancer.name),
            ),
            attr("zone_id", "Z0BALANCERS".to_owned()),
        ]),
        _ => Attrs::new(),
    }
}

fn put(object: &Object, now: Duration) -> Put {
    let body = object.body();
    let waiting = body.and_then(|body| slow_start(&body.resource));
    Put {
        physical: object.physical.clone(),
        attrs: body.map(|body| body.attrs.clone()).unwrap_or_default(),
        waiting_for: waiting.filter(|_| now < object.usable).map(str::to_owned),
    }
}

fn remove(state: &mut State, have: &Observed<Cloud>, times: Times) -> Result<Removed, Failure> {
    let id = have.resource.id();
    let gone = || refused(Class::Gone, "remove", &id, "does not exist");
    let alive = state
        .object(&have.physical)
        .is_some_and(|object| object.body().is_some());
    if !alive {
        return Err(gone());
    }
    if let Some(other) = blocker(state, &have.physical, times.now) {
        let message = format!("{} depends on it", other.physical);
        return Err(refused(Class::Blocked, "remove", &id, &message));
    }
    for object in &mut state.objects {
        if object.body().is_some_and(|body| {
            body.refs.contains(&have.physical) && goes_with(&body.resource, &have.physical)
        }) {
            object.remove(times.shows);
        }
    }
    let object = state.object_mut(&have.physical).ok_or_else(gone)?;
    object.remove(times.shows);
    let Some(what) = slow_end(&have.resource) else {
        return Ok(Removed::Done);
    };
    object.holds = times.slow;
    Ok(going(object, what, times.now))
}

fn going(object: &Object, what: &str, now: Duration) -> Removed {
    if object.holds <= now {
        Removed::Done
    } else {
        Removed::Waiting(what.to_owned())
    }
}

impl World<Cloud> for SimCloud {
    async fn observe(&self) -> Result<Snapshot<Cloud>, Failure> {
        self.request("observe", None, |state, times| Ok(state.sweep(times.now)))
            .await
    }

    async fn find(&self, want: &Cloud, refs: &Refs) -> Result<Option<Observed<Cloud>>, Failure> {
        let body = Body {
            resource: want.clone(),
            attrs: Attrs::new(),
            refs: physical_refs(want, refs),
        };
        self.request("find", None, move |state, times| {
            let (id, naming) = (body.resource.id(), naming(&body));
            let found = state.look(times.now, |object, other| match &naming {
                Naming::Taken(_) => super::rules::naming(other) == naming,
                _ => !object.foreign && other.resource.id() == id,
            });
            match found {
                Some((object, found)) if object.foreign || found.resource.id() != id => {
                    let message = format!("the name belongs to {}", object.physical);
                    Err(refused(Class::Invalid, "find", &id, &message))
                }
                found => Ok(found.map(|(_, found)| found)),
            }
        })
        .await
    }

    async fn put(
        &self,
        want: &Cloud,
        have: Option<&Observed<Cloud>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        if let Some(have) = have {
            return self.change(want, &have.physical, refs).await;
        }
        let Some(half) = half_made(want) else {
            return self.create(want, refs).await;
        };
        let made = self.create(&half, refs).await?;
        let whole = self.change(want, &made.physical, refs).await;
        whole.map_err(|failure| Failure {
            class: Class::Unknown,
            ..failure
        })
    }

    async fn remove(&self, have: &Observed<Cloud>) -> Result<Removed, Failure> {
        let have = have.clone();
        self.request("remove", None, move |state, times| {
            remove(state, &have, times)
        })
        .await
    }

    async fn ready(&self, want: &Cloud, physical: &str) -> Result<Put, Failure> {
        let (id, physical) = (want.id(), physical.to_owned());
        self.request("ready", None, move |state, times| {
            let object = state
                .object(&physical)
                .filter(|object| object.body().is_some());
            let gone = || refused(Class::Gone, "ready", &id, "does not exist");
            object.map(|object| put(object, times.now)).ok_or_else(gone)
        })
        .await
    }

    async fn gone(&self, have: &Observed<Cloud>) -> Result<Removed, Failure> {
        let have = have.clone();
        self.request("gone", None, move |state, times| {
            let what = slow_end(&have.resource).unwrap_or_default();
            let object = state.object(&have.physical);
            Ok(object.map_or(Removed::Done, |object| going(object, what, times.now)))
        })
        .await
    }
}
