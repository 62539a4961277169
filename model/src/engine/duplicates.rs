//! Two objects with one id: which one stays.

use super::plan::PlanError;
use super::resource::{Id, Resource};
use super::snapshot::{Observed, Snapshot};
use std::collections::BTreeMap;

/// What a snapshot holds once every id is unique.
pub(super) struct Sorted<'a, R> {
    /// One object an id.
    pub kept: BTreeMap<Id, &'a Observed<R>>,
    /// The rest.
    pub extra: Vec<&'a Observed<R>>,
}

/// Keeps the used one of each set of duplicates, else the oldest, else the one with the smallest physical
/// id. Two used ones of something wanted are for a person to sort out; of something unwanted, both go.
pub(super) fn sort<R: Resource>(
    snapshot: &Snapshot<R>,
    wanted: impl Fn(&Id) -> bool,
) -> Result<Sorted<'_, R>, PlanError> {
    let mut groups: BTreeMap<Id, Vec<&Observed<R>>> = BTreeMap::new();
    for item in &snapshot.items {
        groups.entry(item.resource.id()).or_default().push(item);
    }
    let mut sorted = Sorted {
        kept: BTreeMap::new(),
        extra: Vec::new(),
    };
    let mut both_used = Vec::new();
    for (id, mut group) in groups {
        group.sort_by_key(|item| rank(item));
        // A page boundary may show the same object twice.
        group.dedup_by(|one, other| one.physical == other.physical);
        let used: Vec<String> = group
            .iter()
            .filter(|item| item.in_use)
            .map(|item| item.physical.clone())
            .collect();
        if used.len() > 1 && wanted(&id) {
            both_used.push((id.clone(), used));
        }
        let mut group = group.into_iter();
        if let Some(first) = group.next() {
            sorted.kept.insert(id, first);
        }
        sorted.extra.extend(group);
    }
    if both_used.is_empty() {
        Ok(sorted)
    } else {
        Err(PlanError::BothUsed(both_used))
    }
}

fn rank<R>(item: &Observed<R>) -> (bool, bool, Option<&str>, &str) {
    let created = item.created.as_deref();
    (!item.in_use, created.is_none(), created, &item.physical)
}
