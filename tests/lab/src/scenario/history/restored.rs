//! What is left of a history after a restore: nothing that is later than the revision with which the restored data ends.

use super::super::PUBLIC;
use super::{Attempt, AttemptKind, History, Outcome, Seen, SeenKind};
use std::collections::BTreeMap;

/// Objects by name, with value and version.
type Items = BTreeMap<String, (String, u64)>;

/// Changes that somebody saw, by key and version: true for a deletion.
type Changes = BTreeMap<(String, u64), bool>;

impl History {
    /// This history as it is once data that ends with a revision has taken the place of everything later, and these objects are listed. The
    /// judge finds what is missing of what was until then, and what is there besides. Also returns the acknowledged writes that are lost.
    pub fn restored_at(mut self, revision: u64, items: Items) -> (Self, Vec<Attempt>) {
        let changes = self.changes();
        let ends = self.attempts.iter().map(|one| one.ended);
        let last = ends.fold(0.0, f64::max);
        // A read that found nothing does not say of which revision that is.
        self.attempts
            .retain(|one| one.is_write() || one.version.is_some_and(|version| version <= revision));
        let mut lost = Vec::new();
        for one in &mut self.attempts {
            if !is_undone(one, revision, &items, &changes) {
                continue;
            }
            if one.is_acknowledged() {
                lost.push(one.clone());
            }
            (one.outcome, one.version) = (Outcome::Refused, None);
        }
        self.seen.retain(|seen| version_of(seen) <= revision);
        let what = SeenKind::List {
            begun: last,
            ended: last,
            version: revision,
            items,
        };
        let client = PUBLIC.to_owned();
        self.seen.push(Seen { client, what });
        (self, lost)
    }

    fn changes(&self) -> Changes {
        let known = self.attempts.iter().filter_map(|one| {
            let version = one.version?;
            Some(((one.name.clone(), version), false))
        });
        let seen = self.seen.iter().filter_map(|seen| match &seen.what {
            SeenKind::Stored { name, version, .. } => Some(((name.clone(), *version), false)),
            SeenKind::Deleted { name, version } => Some(((name.clone(), *version), true)),
            SeenKind::List { .. } | SeenKind::Bookmark { .. } => None,
        });
        known.chain(seen).collect()
    }
}

/// True if an attempt had its effect after the revision, or had none that lasts.
fn is_undone(one: &Attempt, revision: u64, items: &Items, changes: &Changes) -> bool {
    if one.version.max(one.expected) > Some(revision) {
        return true;
    }
    let (AttemptKind::Delete, Some(expected)) = (one.did, one.expected) else {
        return false;
    };
    let place = |version: u64| (one.name.clone(), version);
    let mut after = changes.range(place(expected.saturating_add(1))..=place(u64::MAX));
    match after.next() {
        Some(((_, next), _)) if *next <= revision => false,
        // Its own revision. Without an answer the revision of a deletion is known from watches alone.
        Some((_, true)) => true,
        _ => items.get(&one.name).is_some_and(|item| item.1 == expected),
    }
}

fn version_of(seen: &Seen) -> u64 {
    match seen.what {
        SeenKind::List { version, .. }
        | SeenKind::Stored { version, .. }
        | SeenKind::Deleted { version, .. }
        | SeenKind::Bookmark { version } => version,
    }
}
