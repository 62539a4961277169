//! One step under way: where it stands, and the one call it makes next.

use super::failure::{Class, Failure};
use super::plan::{Action, Step};
use super::resource::{Id, Resource};
use super::snapshot::{Attrs, Observed};
use super::world::{Put, Refs, Removed, World};
use std::time::Duration;

/// Which call is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Create or change it.
    Put,
    /// Look whether it is there: its name was taken, or nobody knows whether the put happened.
    Find,
    /// See whether it is usable.
    Ready,
    Remove,
    /// See whether it is gone.
    Gone,
}

/// A put whose outcome nobody knows.
#[derive(Clone, Debug)]
pub(super) struct Doubt {
    /// When it was made.
    pub since: Duration,
    pub failure: Failure,
}

/// One step under way.
pub(super) struct Work<R> {
    pub id: Id,
    pub action: Action,
    /// What is wanted, late values written in; `None` for a removal.
    pub want: Option<R>,
    /// What is there, as far as known.
    pub have: Option<Observed<R>>,
    pub phase: Phase,
    /// When the first call went out.
    pub began: Duration,
    /// When the next call is due.
    pub due: Duration,
    /// When it last got further; the deadline counts from here.
    pub since: Duration,
    /// Looks since then, for the backoff.
    pub polls: u32,
    /// Throttled calls in a row, for the backoff.
    pub throttled: u32,
    /// Changes whose outcome nobody knew.
    pub tries: u32,
    pub doubt: Option<Doubt>,
    /// Found after the step began: reads may not show it everywhere yet.
    pub adopted: bool,
    /// The world's own id, once known.
    pub physical: String,
    /// Attributes, as far as known.
    pub attrs: Attrs,
    /// The last message about it, so that it is sent once.
    pub last_message: String,
}

impl<R: Resource> Work<R> {
    /// The step at its first call, with all late values that are known by now.
    pub(super) fn start(step: &Step<R>, refs: &Refs, now: Duration) -> Self {
        let want = step.after.as_ref();
        let have = step.before.clone();
        Self {
            id: step.id.clone(),
            action: step.action,
            want: want.map(|want| want.resolved(&|id, attribute| refs.attr(id, attribute))),
            phase: match step.action {
                Action::Create | Action::Update => Phase::Put,
                Action::Delete => Phase::Remove,
            },
            began: now,
            due: now,
            since: now,
            polls: 0,
            throttled: 0,
            tries: 0,
            doubt: None,
            adopted: false,
            physical: have
                .as_ref()
                .map(|have| have.physical.clone())
                .unwrap_or_default(),
            attrs: have
                .as_ref()
                .map(|have| have.attrs.clone())
                .unwrap_or_default(),
            have,
            last_message: String::new(),
        }
    }

    /// True for a create that could leave a second object behind.
    pub(super) fn is_journaled(&self) -> bool {
        self.action == Action::Create && self.want.as_ref().is_some_and(Resource::needs_journal)
    }
}

/// What a call came to.
pub(super) enum Answer<R> {
    Put(Put),
    Found(Option<Observed<R>>),
    Removed(Removed),
    Failed(Failure),
}

/// Makes the call that is next.
pub(super) async fn make_call<R: Resource, W: World<R>>(
    world: &W,
    work: &Work<R>,
    refs: &Refs,
) -> Answer<R> {
    let answer = match (work.phase, &work.want, &work.have) {
        (Phase::Put, Some(want), have) => {
            let put = world.put(want, have.as_ref(), refs).await;
            put.map(Answer::Put)
        }
        (Phase::Find, Some(want), _) => world.find(want, refs).await.map(Answer::Found),
        (Phase::Ready, Some(want), _) => {
            let put = world.ready(want, &work.physical).await;
            put.map(Answer::Put)
        }
        (Phase::Remove, _, Some(have)) => world.remove(have).await.map(Answer::Removed),
        (Phase::Gone, _, Some(have)) => world.gone(have).await.map(Answer::Removed),
        _ => Err(Failure {
            class: Class::Invalid,
            call: format!("{:?} of {}", work.phase, work.id),
            code: String::new(),
            message: "the plan lacks the object".to_owned(),
            hint: None,
            request_id: None,
        }),
    };
    answer.unwrap_or_else(Answer::Failed)
}
