//! The whole surface the engine needs from the outside.

use super::failure::Failure;
use super::resource::{Id, Ref, Resource};
use super::snapshot::{Attrs, Observed, Snapshot};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

/// The physical id of every resource that exists by now: those observed, then those made by this run. Calls under way see what is added.
#[derive(Debug, Default)]
pub struct Refs {
    known: RwLock<BTreeMap<Id, (String, Attrs)>>,
}

impl Refs {
    /// Remembers that `id` exists as `physical`.
    pub fn insert(&self, id: Id, physical: String, attrs: Attrs) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(id, (physical, attrs));
    }

    fn known(&self) -> RwLockReadGuard<'_, BTreeMap<Id, (String, Attrs)>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The physical id behind a reference: the given one as it stands, or that of our own resource.
    pub fn physical(&self, of: &Ref) -> Option<String> {
        match of {
            Ref::Given(given) => Some(given.clone()),
            Ref::Own { .. } => of
                .id()
                .and_then(|id| Some(self.known().get(&id)?.0.clone())),
        }
    }

    /// An attribute of one of our own resources.
    pub fn attr(&self, id: &Id, attribute: &str) -> Option<String> {
        self.known().get(id)?.1.get(attribute).cloned()
    }
}

/// What a put made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// The world's own id.
    pub physical: String,
    /// Attributes that others may wait for.
    pub attrs: Attrs,
    /// If it is not usable yet: what is being waited for, in words for the terminal. The engine then polls [`World::ready`].
    pub waiting_for: Option<String>,
}

/// What a removal came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removed {
    Done,
    /// It is going; what is being waited for, in words for the terminal. The engine then polls [`World::gone`].
    Waiting(String),
}

/// Something that can be observed in bulk and changed one object at a time. Methods make one attempt
/// (the client may retry throttling); waiting, retrying and deadlines are the engine's.
pub trait World<R: Resource> {
    /// One sweep over everything that belongs to the cluster; calls grow with kinds and pages, not with objects.
    fn observe(&self) -> impl Future<Output = Result<Snapshot<R>, Failure>>;

    /// Looks up the one object that `want` would be, after an outcome nobody knows or a taken name.
    /// `Ok(None)`: not there. A taken name that is not ours is a `Class::Invalid` failure that says whose it is.
    fn find(
        &self,
        want: &R,
        refs: &Refs,
    ) -> impl Future<Output = Result<Option<Observed<R>>, Failure>>;

    /// Creates `want` (`have` is `None`), or changes `have` in place. All late values in `want` are resolved.
    /// Where that takes several calls and one after the first effect fails, the class is `Unknown`, whatever
    /// the world said: the engine then finds what is there and changes it, which says the same again if it
    /// is final. A plain retry would make the first effect twice.
    fn put(
        &self,
        want: &R,
        have: Option<&Observed<R>>,
        refs: &Refs,
    ) -> impl Future<Output = Result<Put, Failure>>;

    fn remove(&self, have: &Observed<R>) -> impl Future<Output = Result<Removed, Failure>>;

    /// After a put that left something to wait for: `None` once usable (with its final attributes merged by
    /// the engine from the returned value), or what is still being waited for.
    fn ready(&self, want: &R, physical: &str) -> impl Future<Output = Result<Put, Failure>>;

    /// After a removal that left something to wait for.
    fn gone(&self, have: &Observed<R>) -> impl Future<Output = Result<Removed, Failure>>;
}

/// What a journal remembers of objects that the world would make twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Noted {
    /// An earlier, interrupted run had begun to create them: whether they are there is not known.
    pub creating: Vec<Id>,
    /// They were there after the last run that ended in an orderly way.
    pub made: Vec<Id>,
}

/// Remembers, outside the process, which creates without a client token are under way, and what came of earlier ones.
pub trait Journal {
    /// What it says now.
    fn open(&self) -> impl Future<Output = Result<Noted, Failure>>;

    /// Writes the ids that are about to be created, before the first of them.
    fn record(&self, ids: &[Id]) -> impl Future<Output = Result<(), Failure>>;

    /// After a run that ended in an orderly way: nothing is being created, and these are there.
    fn close(&self, made: &[Id]) -> impl Future<Output = Result<(), Failure>>;
}

/// For worlds in which nothing can be made twice, because names there are unique.
#[derive(Clone, Copy, Debug)]
pub struct NoJournal;

impl Journal for NoJournal {
    async fn open(&self) -> Result<Noted, Failure> {
        Ok(Noted::default())
    }

    async fn record(&self, _ids: &[Id]) -> Result<(), Failure> {
        Ok(())
    }

    async fn close(&self, _made: &[Id]) -> Result<(), Failure> {
        Ok(())
    }
}

/// Time, as an argument.
pub trait Clock {
    /// Time since some fixed point, for durations and deadlines.
    fn now(&self) -> Duration;

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()>;
}
