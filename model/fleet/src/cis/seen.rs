//! What places of the cluster say of a control, and the sentence that is made of it.

use node::waits::bounded_text;
use std::collections::BTreeMap;

/// Places that are named of those that say the same.
const PLACES: usize = 3;

/// Different observations that are named.
const OBSERVATIONS: usize = 12;

/// Limit of a text from a node or an object, characters.
const TEXT: usize = 300;

/// What an observation says of a control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Right,
    Wrong,
    /// It could not be observed, or only a person can judge it.
    Unseen,
}

/// An observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// The node or object; empty for the whole cluster.
    at: String,
    what: String,
    pub(super) state: State,
}

impl Seen {
    pub(super) fn new(at: &str, what: impl AsRef<str>, state: State) -> Self {
        Self {
            at: bounded_text(at, TEXT),
            what: bounded_text(what.as_ref(), TEXT),
            state,
        }
    }

    pub(super) fn unseen(at: &str, why: impl AsRef<str>) -> Self {
        Self::new(at, why, State::Unseen)
    }

    /// Right or wrong.
    pub(super) fn judged(at: &str, what: impl AsRef<str>, right: bool) -> Self {
        let state = if right { State::Right } else { State::Wrong };
        Self::new(at, what, state)
    }
}

/// Observations in this state in one line, those that say the same together.
pub(super) fn summarize(all: &[Seen], state: State) -> String {
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for seen in all.iter().filter(|seen| seen.state == state) {
        let of_these = places.entry(&seen.what).or_default();
        of_these.extend(Some(seen.at.as_str()).filter(|at| !at.is_empty()));
    }
    if places.is_empty() {
        return "nothing was found that it is about".to_owned();
    }
    let said = places.into_iter().map(|(what, mut at)| {
        at.sort_unstable();
        at.dedup();
        match list(&at, PLACES) {
            none if none.is_empty() => what.to_owned(),
            at => format!("{what} ({at})"),
        }
    });
    let said: Vec<String> = said.collect();
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    list(&said, OBSERVATIONS)
}

/// The first of several texts, and how many more there are.
fn list(all: &[&str], most: usize) -> String {
    let first: Vec<&str> = all.iter().copied().take(most).collect();
    match all.len().saturating_sub(most) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
