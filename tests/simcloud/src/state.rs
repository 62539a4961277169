//! The objects of the simulated cloud, with their past: reads may show what was true a while ago.

use super::faults::Rng;
use super::shape::ClusterShape;
use cloud::Cloud;
use engine::{Attrs, Id, Noted, Observed, Ref, Refs, Resource, Snapshot};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

/// One object at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    pub resource: Cloud,
    pub attrs: Attrs,
    /// Physical ids of what it refers to.
    pub refs: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Version {
    /// From when on reads show it.
    shows: Duration,
    /// `None` once the object is removed.
    body: Option<Rc<Body>>,
}

/// One object, dead or alive.
#[derive(Clone, Debug)]
pub struct Object {
    /// The cloud's id of it.
    pub physical: String,
    /// Whether the object belongs to somebody else.
    pub foreign: bool,
    /// When it was made.
    pub created: Duration,
    /// From when on it can be used.
    pub usable: Duration,
    /// Until when it is in the way after its removal.
    pub holds: Duration,
    /// Something that is no resource of ours uses it: a volume is attached.
    pub in_use: bool,
    versions: Vec<Version>,
}

impl Object {
    /// As it truly is; `None` once it is removed, even if it still lingers.
    pub fn current_body(&self) -> Option<&Rc<Body>> {
        self.versions.last()?.body.as_ref()
    }

    /// As reads show it at `now`.
    fn visible_body(&self, now: Duration) -> Option<&Rc<Body>> {
        let mut shown = self.versions.iter().filter(|version| version.shows <= now);
        shown.next_back()?.body.as_ref()
    }

    /// True once reads show that it was made.
    pub fn is_shown(&self, now: Duration) -> bool {
        self.versions
            .first()
            .is_some_and(|first| first.shows <= now)
    }

    /// What is in the way of others: itself, also while it is going.
    pub fn lingering_body(&self, now: Duration) -> Option<&Rc<Body>> {
        let last = self
            .versions
            .iter()
            .rev()
            .find_map(|version| version.body.as_ref());
        last.filter(|_| self.current_body().is_some() || now < self.holds)
    }

    /// True if it was ever changed or removed.
    pub fn was_changed(&self) -> bool {
        self.versions.len() != 1
    }

    fn push_version(&mut self, body: Option<Rc<Body>>, shows: Duration) {
        let before = self.versions.last().map(|last| last.shows);
        let shows = shows.max(before.unwrap_or_default());
        self.versions.push(Version { shows, body });
    }

    /// Changes it; reads show that from `shows` on.
    pub fn change_body(&mut self, body: Body, shows: Duration) {
        self.push_version(Some(Rc::new(body)), shows);
    }

    /// Removes the object; reads show that from `shows` on.
    pub fn remove_body(&mut self, shows: Duration) {
        self.push_version(None, shows);
    }

    fn observed_as(&self, body: &Body) -> Observed<Cloud> {
        Observed {
            resource: body.resource.clone(),
            physical: self.physical.clone(),
            attrs: body.attrs.clone(),
            created: Some(format_timestamp(self.created)),
            uses: body.refs.clone(),
            in_use: self.in_use,
        }
    }
}

fn format_timestamp(at: Duration) -> String {
    let s = at.as_secs();
    let (day, hour, minute) = (1 + s / 86400, s / 3600 % 24, s / 60 % 60);
    let (second, milli) = (s % 60, at.subsec_millis());
    format!("2026-01-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// A read: for each object it may be answered by another server, each a little behind.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadScope {
    pub now: Duration,
    /// How far behind a server may be.
    pub behind: Duration,
    /// Decides which are how far.
    pub seed: u64,
}

impl ReadScope {
    /// The time that it shows of that object.
    fn looks_at(&self, object: u64) -> Duration {
        let behind = Rng::new(self.seed.wrapping_add(object)).random_time(self.behind);
        self.now.saturating_sub(behind)
    }
}

/// Everything that outlives a process.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// All objects that ever existed.
    pub objects: Vec<Object>,
    /// The journal in the state store, and how often it was written.
    pub journal: (u64, Noted),
    /// How often an object was made while a living one had its id.
    pub made_twice: usize,
    /// Physical ids of what holds data and was to be removed though the cluster was not to go.
    pub endangered: Vec<String>,
}

impl State {
    /// A cloud in which somebody else has a network under the same names.
    pub fn beside_others() -> Self {
        let mut state = Self::default();
        for resource in ClusterShape::default().all_objects() {
            let kind = resource.id().kind().to_owned();
            if ["vpc", "subnet", "security_group"].contains(&kind.as_str()) {
                let refs = state.objects.first().map(|vpc| vpc.physical.clone());
                let (attrs, refs) = (Attrs::new(), refs.into_iter().collect());
                let body = Body {
                    resource,
                    attrs,
                    refs,
                };
                state.add_object(body, true, Duration::ZERO, Duration::ZERO);
            }
        }
        state
    }

    /// Something of somebody else's that uses one of our objects.
    pub fn add_foreign_user(&mut self, resource: Cloud, of: &str, now: Duration) {
        let body = Body {
            resource,
            attrs: Attrs::new(),
            refs: BTreeSet::from([of.to_owned()]),
        };
        self.add_object(body, true, now, now);
    }

    /// Adds an object and returns its physical id.
    pub fn add_object(
        &mut self,
        body: Body,
        foreign: bool,
        now: Duration,
        shows: Duration,
    ) -> String {
        let id = body.resource.id();
        let twin = |object: &Object| {
            object
                .current_body()
                .is_some_and(|body| body.resource.id() == id)
        };
        self.made_twice += usize::from(!foreign && self.living_objects().any(twin));
        self.push_object(body, foreign, now, shows)
    }

    /// Somebody makes a copy of something of ours with its tags, as a restored EBS snapshot is one.
    pub fn copy_object(&mut self, physical: &str, in_use: bool, now: Duration) {
        let body = self
            .find_object(physical)
            .and_then(Object::current_body)
            .cloned();
        if let Some(body) = body {
            let copy = self.push_object((*body).clone(), false, now, now);
            if let Some(object) = self.object_mut(&copy) {
                object.in_use = in_use;
            }
        }
    }

    fn push_object(&mut self, body: Body, foreign: bool, now: Duration, shows: Duration) -> String {
        let id = body.resource.id();
        let physical = format!("{}-{:05}", id.kind(), self.objects.len());
        self.objects.push(Object {
            physical: physical.clone(),
            foreign,
            created: now,
            usable: now,
            holds: now,
            in_use: false,
            versions: vec![Version {
                shows,
                body: Some(Rc::new(body)),
            }],
        });
        physical
    }

    /// All objects of the cluster that are truly there.
    pub fn living_objects(&self) -> impl Iterator<Item = &Object> {
        let own = |object: &&Object| !object.foreign && object.current_body().is_some();
        self.objects.iter().filter(own)
    }

    /// The object with that physical id, dead or alive.
    pub fn find_object(&self, physical: &str) -> Option<&Object> {
        self.objects
            .iter()
            .find(|object| object.physical == physical)
    }

    /// The same, to change it.
    pub fn object_mut(&mut self, physical: &str) -> Option<&mut Object> {
        self.objects
            .iter_mut()
            .find(|object| object.physical == physical)
    }

    /// What a sweep shows.
    pub fn sweep_all(&self, read: ReadScope) -> Snapshot<Cloud> {
        let own = self
            .visible_objects(read)
            .filter(|(object, _)| !object.foreign);
        let items = own.map(|(object, body)| object.observed_as(body));
        Snapshot {
            items: items.collect(),
        }
    }

    /// The first object that a read shows and that is meant.
    pub fn find_visible(
        &self,
        read: ReadScope,
        meant: impl Fn(&Object, &Body) -> bool,
    ) -> Option<(&Object, Observed<Cloud>)> {
        let found = self
            .visible_objects(read)
            .find(|(object, body)| meant(object, body));
        found.map(|(object, body)| (object, object.observed_as(body)))
    }

    /// What a read shows.
    fn visible_objects(&self, read: ReadScope) -> impl Iterator<Item = (&Object, &Body)> {
        let objects = self.objects.iter().zip(0..);
        objects.filter_map(move |(object, number)| {
            let body = object.visible_body(read.looks_at(number))?;
            Some((object, &**body))
        })
    }
}

/// Physical ids of everything that `want` refers to. Every one must be known by now: the engine's duty.
pub fn physical_refs(want: &Cloud, refs: &Refs) -> BTreeSet<String> {
    let physical = |need: Id| {
        let physical = refs.physical(&Ref::own(&need));
        assert!(physical.is_some(), "{} was put before {need}", want.id());
        physical
    };
    want.needs().into_iter().filter_map(physical).collect()
}
