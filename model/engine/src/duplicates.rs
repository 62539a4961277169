//! Two objects with one id: which one stays, and what goes with the other.

use super::order;
use super::plan::PlanError;
use super::resource::{Id, Resource};
use super::snapshot::{Observed, Snapshot};
use std::collections::{BTreeMap, BTreeSet};

/// What a snapshot holds once every id is unique.
pub(super) struct Sorted<'a, R> {
    /// One object an id.
    pub kept: BTreeMap<Id, &'a Observed<R>>,
    /// The rest: duplicates, and what hangs on them.
    pub extra: Vec<&'a Observed<R>>,
}

/// Of each set of duplicates keeps the one with something on it that cannot be made again, else the one with
/// the most on it, else the oldest, else the one with the smallest physical id. What hangs on the others goes
/// with them: it would stand in the wrong place. Two that cannot be made again are for a person to sort out,
/// unless they are not wanted: then both go; or they hold data: then none goes.
pub(super) fn sort_duplicates<R: Resource>(
    snapshot: &Snapshot<R>,
    wanted: impl Fn(&Id) -> bool,
) -> Result<Sorted<'_, R>, PlanError> {
    let mut groups: BTreeMap<Id, BTreeMap<&str, &Observed<R>>> = BTreeMap::new();
    for item in &snapshot.items {
        let group = groups.entry(item.resource.id()).or_default();
        group.insert(&item.physical, item);
    }
    let users = users_by_object(snapshot);
    let mut sorted = Sorted {
        kept: BTreeMap::new(),
        extra: Vec::new(),
    };
    let mut gone: BTreeSet<Key<'_>> = BTreeSet::new();
    let mut undecided = Vec::new();
    for id in used_first(&groups) {
        let group = groups.remove(&id).unwrap_or_default();
        let (out, left): (Vec<_>, Vec<_>) = group
            .into_values()
            .partition(|item| gone.contains(&item_key(item)));
        sorted.extra.extend(out);
        // Most are there once: what hangs on them decides nothing.
        if let [only] = left.as_slice() {
            sorted.kept.insert(id, only);
            continue;
        }
        let mut ranked: Vec<Candidate<'_, R>> = left
            .into_iter()
            .map(|item| Candidate::new(item, &users, &gone))
            .collect();
        ranked.sort_by(|one, other| one.rank().cmp(&other.rank()));
        let firm = ranked.iter().filter(|candidate| candidate.firm);
        let firm: Vec<String> = firm
            .map(|candidate| candidate.item.physical.clone())
            .collect();
        let data = ranked.iter().any(|one| one.item.resource.holds_data());
        if firm.len() > 1 && wanted(&id) && !data {
            undecided.push((id.clone(), firm));
        }
        let mut ranked = ranked.into_iter();
        if let Some(first) = ranked.next() {
            sorted.kept.insert(id, first.item);
        }
        for candidate in ranked {
            sorted.extra.push(candidate.item);
            gone.extend(candidate.on_it);
        }
    }
    if undecided.is_empty() {
        Ok(sorted)
    } else {
        Err(PlanError::BothUsed(undecided))
    }
}

/// Ids so that whatever is referred to comes before what refers to it.
fn used_first<R: Resource>(groups: &BTreeMap<Id, BTreeMap<&str, &Observed<R>>>) -> Vec<Id> {
    let needs: order::Needs = groups
        .iter()
        .map(|(id, group)| {
            let needs = group.values().flat_map(|item| item.resource.needs());
            (id.clone(), needs.collect())
        })
        .collect();
    order::topological_order(&needs).unwrap_or_else(|_| needs.into_keys().collect())
}

/// What tells any two objects apart.
type Key<'a> = (Id, &'a str);

fn item_key<R: Resource>(item: &Observed<R>) -> Key<'_> {
    (item.resource.id(), &item.physical)
}

type Users<'a, R> = BTreeMap<Key<'a>, Vec<&'a Observed<R>>>;

fn users_by_object<R: Resource>(snapshot: &Snapshot<R>) -> Users<'_, R> {
    let mut users: Users<'_, R> = BTreeMap::new();
    for item in &snapshot.items {
        for used in item.physical_ids() {
            users.entry(used).or_default().push(item);
        }
    }
    users
}

struct Candidate<'a, R> {
    item: &'a Observed<R>,
    /// Everything that hangs on it, at any distance.
    on_it: BTreeSet<Key<'a>>,
    /// It, or something on it, cannot be made again.
    firm: bool,
}

impl<'a, R: Resource> Candidate<'a, R> {
    fn new(item: &'a Observed<R>, users: &Users<'a, R>, gone: &BTreeSet<Key<'a>>) -> Self {
        let mut on_it = BTreeSet::new();
        let mut firm = item.in_use;
        let mut open = vec![item];
        while let Some(used) = open.pop() {
            for user in users.get(&item_key(used)).into_iter().flatten() {
                if !gone.contains(&item_key(user)) && on_it.insert(item_key(user)) {
                    firm |= user.in_use || !user.resource.can_be_remade();
                    open.push(user);
                }
            }
        }
        Self { item, on_it, firm }
    }

    /// Smallest first stays.
    fn rank(&self) -> impl Ord {
        let created = self.item.created.as_deref();
        let most = usize::MAX - self.on_it.len();
        (
            !self.firm,
            most,
            created.is_none(),
            created,
            &self.item.physical,
        )
    }
}
