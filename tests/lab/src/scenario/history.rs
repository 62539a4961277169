//! Judges what clients of a cluster's API saw: all of it must fit one order of writes. etcd gives every write a revision of its own,
//! which is the `resourceVersion`, so the order is that of revisions; no search is necessary. [`super::Writers`] records histories.

mod order;
mod restored;
mod times;

#[cfg(test)]
mod laws;

use anyhow::{Context, Result, ensure};
use order::Order;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Result of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The API server acknowledged the write, or answered the read.
    Done,
    /// The API server refused it, or it was never sent: it has no effect.
    Refused,
    /// No answer, or a failure behind the API server: it may have had an effect.
    Unknown,
}

/// Kind of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptKind {
    Create,
    /// On the condition that the object has the expected version.
    Update,
    /// On the same condition.
    Delete,
    Read,
}

/// One write or read.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Attempt {
    /// Instance ID of the control plane that was asked, or [`super::PUBLIC`].
    pub client: String,
    /// Start of the attempt, in seconds since 1970.
    pub begun: f64,
    pub ended: f64,
    pub did: AttemptKind,
    pub name: String,
    /// What was written or read; no two writes of a history have the same.
    pub value: String,
    /// Version on which a write depends.
    pub expected: Option<u64>,
    pub outcome: Outcome,
    /// Version after a create or an update, or of what was read. Without one, a read found nothing.
    pub version: Option<u64>,
    pub why: String,
}

/// Something that a list or a watch showed to a client.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Seen {
    pub client: String,
    #[serde(flatten)]
    pub what: SeenKind,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SeenKind {
    /// All objects, by name with value and version. The events after it are of a watch from its version on.
    List {
        begun: f64,
        ended: f64,
        version: u64,
        items: BTreeMap<String, (String, u64)>,
    },
    Stored {
        name: String,
        value: String,
        version: u64,
    },
    Deleted {
        name: String,
        version: u64,
    },
    /// All events up to this version were sent.
    Bookmark {
        version: u64,
    },
}

/// Everything that clients did and saw. Lists and events of a client are in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    pub attempts: Vec<Attempt>,
    pub seen: Vec<Seen>,
}

/// Number of writes by result, and of what else was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    pub acknowledged: usize,
    pub refused: usize,
    pub unknown: usize,
    pub reads: usize,
    pub lists: usize,
    pub events: usize,
}

impl Attempt {
    pub fn is_write(&self) -> bool {
        self.did != AttemptKind::Read
    }

    /// Whether this is a write that was acknowledged.
    pub fn is_acknowledged(&self) -> bool {
        self.is_write() && self.outcome == Outcome::Done
    }
}

/// A list, as [`SeenKind::List`] has it.
struct List<'a> {
    client: &'a str,
    begun: f64,
    ended: f64,
    version: u64,
    items: &'a BTreeMap<String, (String, u64)>,
}

/// A list and the watch after it, until the next list.
struct Session<'a> {
    client: &'a str,
    /// Version of the list.
    from: u64,
    /// The last version that the watch showed.
    until: u64,
    events: BTreeSet<u64>,
}

impl History {
    /// One order of writes per key must contain every acknowledged write and no refused one, and fit every read, list and watch. A
    /// write without a known result may be in it, and is if anybody saw it.
    pub fn judge(&self) -> Result<Tally> {
        let lists = self.lists();
        let last = self.attempts.iter().map(|one| one.ended);
        let last = last.fold(0.0, f64::max);
        ensure!(
            lists.iter().any(|list| list.begun >= last),
            "nobody listed the final state"
        );
        let sessions = self.watch_sessions()?;
        let order = Order::from_history(self, &lists, &sessions)?;
        for session in &sessions {
            order.check_session(session)?;
        }
        for list in &lists {
            order.check_list(list)?;
        }
        times::check_keys(self, &order, &lists)?;
        times::check_revisions(self, &order, &lists)?;
        Ok(self.count(lists.len()))
    }

    fn lists(&self) -> Vec<List<'_>> {
        let list = |seen| match seen {
            &Seen {
                ref client,
                what:
                    SeenKind::List {
                        begun,
                        ended,
                        version,
                        ref items,
                    },
            } => Some(List {
                client,
                begun,
                ended,
                version,
                items,
            }),
            _ => None,
        };
        self.seen.iter().filter_map(list).collect()
    }

    /// What each watch showed. Versions that a client sees never go back.
    fn watch_sessions(&self) -> Result<Vec<Session<'_>>> {
        let mut open: BTreeMap<&str, Session> = BTreeMap::new();
        let mut sessions = Vec::new();
        for seen in &self.seen {
            let client = seen.client.as_str();
            let (version, event) = match seen.what {
                SeenKind::List { version, .. } | SeenKind::Bookmark { version } => (version, false),
                SeenKind::Stored { version, .. } | SeenKind::Deleted { version, .. } => {
                    (version, true)
                }
            };
            let before = open.get(client).map_or(0, |session| session.until);
            ensure!(
                version > before || (version == before && !event),
                "{client} saw version {before}, and then {seen:?}"
            );
            if matches!(seen.what, SeenKind::List { .. }) {
                let new = Session {
                    client,
                    from: version,
                    until: version,
                    events: BTreeSet::new(),
                };
                sessions.extend(open.insert(client, new));
                continue;
            }
            let session = open.get_mut(client);
            let session = session.with_context(|| format!("{client} watched without a list"))?;
            session.until = version;
            if event {
                session.events.insert(version);
            }
        }
        sessions.extend(open.into_values());
        Ok(sessions)
    }

    fn count(&self, lists: usize) -> Tally {
        let writes = |outcome| {
            let of = |one: &&Attempt| one.is_write() && one.outcome == outcome;
            self.attempts.iter().filter(of).count()
        };
        let read = |one: &&Attempt| !one.is_write() && one.outcome == Outcome::Done;
        Tally {
            acknowledged: writes(Outcome::Done),
            refused: writes(Outcome::Refused),
            unknown: writes(Outcome::Unknown),
            reads: self.attempts.iter().filter(read).count(),
            lists,
            events: self.seen.len() - lists,
        }
    }
}
