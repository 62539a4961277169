//! The one order of writes that a history allows: by revision, from everything that anybody saw.

use super::{Attempt, AttemptKind, History, List, Outcome, SeenKind, Session};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Place of a write in the order: its revision. A deletion whose revision nobody saw has the revision of what it deleted, and `true`.
pub(super) type Place = (u64, bool);

/// The states of one key, from its first write on. `None`: it was deleted.
pub(super) type KeyOrder<'a> = BTreeMap<Place, Option<&'a Attempt>>;

/// All keys' writes.
#[derive(Default)]
pub(super) struct Order<'a> {
    keys: BTreeMap<&'a str, KeyOrder<'a>>,
    /// Every revision that somebody saw, with its key and value.
    revisions: BTreeMap<u64, (&'a str, Option<&'a str>)>,
    /// Deletions that may have had an effect, by key and expected version; those that were acknowledged first.
    deletes: BTreeMap<(&'a str, u64), Vec<&'a Attempt>>,
}

impl<'a> Order<'a> {
    pub(super) fn from_history(
        history: &'a History,
        lists: &[List<'a>],
        sessions: &[Session],
    ) -> Result<Self> {
        let mut order = Self::default();
        order.add_revisions(history)?;
        order.find_writers(history)?;
        order.add_deletes(history)?;
        order.add_unseen_deletions(lists, sessions)?;
        for name in order.keys.keys() {
            order.check_chain(name)?;
        }
        Ok(order)
    }

    /// A revision is one write of one key, whoever saw it.
    fn add_revisions(&mut self, history: &'a History) -> Result<()> {
        let mut add = |version: u64, name: &'a str, value: Option<&'a str>| {
            let known = *self.revisions.entry(version).or_insert((name, value));
            ensure!(
                known == (name, value),
                "version {version} is {known:?} for one and {:?} for another",
                (name, value)
            );
            Ok(())
        };
        for one in &history.attempts {
            if one.outcome != Outcome::Done || one.did == AttemptKind::Delete {
                continue;
            }
            if let Some(version) = one.version {
                add(version, &one.name, Some(&one.value))?;
            }
            ensure!(
                one.version.is_some() || !one.is_write(),
                "an acknowledged write has no version: {one:?}"
            );
        }
        for seen in &history.seen {
            match &seen.what {
                SeenKind::List { items, .. } => {
                    for (name, (value, version)) in items {
                        add(*version, name, Some(value))?;
                    }
                }
                SeenKind::Stored {
                    name,
                    value,
                    version,
                } => add(*version, name, Some(value))?,
                SeenKind::Deleted { name, version } => add(*version, name, None)?,
                SeenKind::Bookmark { .. } => {}
            }
        }
        Ok(())
    }

    /// Finds the attempt of each value that was seen: not a refused one, and each at one revision only.
    fn find_writers(&mut self, history: &'a History) -> Result<()> {
        let mut writers = BTreeMap::new();
        for one in &history.attempts {
            if matches!(one.did, AttemptKind::Create | AttemptKind::Update) {
                let other = writers.insert(one.value.as_str(), one);
                ensure!(other.is_none(), "one value was written twice: {one:?}");
            }
        }
        for (version, (name, value)) in &self.revisions {
            let mut writer = None;
            if let Some(value) = value {
                let found = writers.remove(value);
                let found = found.with_context(|| {
                    format!("{name} is {value} at version {version}: nobody wrote it, or it is there twice")
                })?;
                ensure!(
                    found.name == *name && found.outcome != Outcome::Refused,
                    "version {version} of {name} is by {found:?}"
                );
                writer = Some(found);
            }
            let key = self.keys.entry(name).or_default();
            key.insert((*version, false), writer);
        }
        Ok(())
    }

    fn add_deletes(&mut self, history: &'a History) -> Result<()> {
        for one in &history.attempts {
            if one.did != AttemptKind::Delete || one.outcome == Outcome::Refused {
                continue;
            }
            let expected = one.expected.context("a deletion without a condition")?;
            let all = self.deletes.entry((&one.name, expected)).or_default();
            match one.outcome {
                Outcome::Done => all.insert(0, one),
                _ => all.push(one),
            }
            let both = all.iter().filter(|one| one.outcome == Outcome::Done);
            ensure!(both.count() < 2, "deleted twice: {all:?}");
        }
        Ok(())
    }

    /// Adds the deletions that must have been, and that no watch showed.
    fn add_unseen_deletions(&mut self, lists: &[List], sessions: &[Session]) -> Result<()> {
        for ((name, version), all) in &self.deletes {
            let place = (*version, false);
            let acknowledged = all.iter().any(|one| one.outcome == Outcome::Done);
            let key = self.keys.get_mut(name);
            let Some(key) = key.filter(|key| matches!(key.get(&place), Some(Some(_)))) else {
                // A client names only what it has seen.
                bail!("{name} had no version {version} when it was deleted: {all:?}");
            };
            let next = key.range((*version, true)..).next();
            let next = next.map(|(&(next, _), &writer)| (next, writer));
            let is_there =
                |list: &&List| list.items.get(*name).map(|item| item.1) == Some(*version);
            let end = next.map_or(u64::MAX, |(next, _)| next);
            let shown = lists.iter().filter(is_there).map(|list| list.version);
            let after = shown.fold(*version, u64::max);
            let gone = lists.iter().filter(|list| {
                (*version..end).contains(&list.version) && !list.items.contains_key(*name)
            });
            let gone = gone.map(|list| list.version).min();
            match next {
                Some((_, None)) => continue,
                Some((_, Some(writer))) if writer.did == AttemptKind::Update => {
                    ensure!(
                        !acknowledged,
                        "deleted, and then changed: {all:?}, {writer:?}"
                    );
                    continue;
                }
                None if !acknowledged && gone.is_none() => continue,
                _ => {}
            }
            // It was after the one and not after the other.
            let until = gone.unwrap_or_else(|| end.saturating_sub(1));
            ensure!(
                after < until,
                "{name} was there at version {after}, and gone at {until}: {all:?}"
            );
            let missed = |one: &&Session| one.from <= after && until <= one.until;
            if let Some(session) = sessions.iter().find(missed) {
                bail!("the watch of {} missed {all:?}", session.client);
            }
            key.insert((*version, true), None);
        }
        Ok(())
    }

    /// Each write of a key was possible after the one before.
    fn check_chain(&self, name: &str) -> Result<()> {
        let mut before: Option<Place> = None;
        let key = self.key(name)?;
        for (place, writer) in key {
            let live = before.filter(|before| matches!(key.get(before), Some(Some(_))));
            let live = live.map(|(version, _)| version);
            let possible = match writer {
                None => live.is_some_and(|version| self.deletes.contains_key(&(name, version))),
                Some(one) if one.did == AttemptKind::Create => live.is_none(),
                Some(one) => live.is_some() && one.expected == live,
            };
            ensure!(
                possible,
                "{name} was at {before:?}, and then at {place:?} by {writer:?}"
            );
            before = Some(*place);
        }
        Ok(())
    }

    /// A watch shows each write after its list, up to the last one that it showed.
    pub(super) fn check_session(&self, session: &Session) -> Result<()> {
        let range = (
            Bound::Excluded(session.from),
            Bound::Included(session.until),
        );
        for (version, write) in self.revisions.range(range) {
            ensure!(
                session.events.contains(version),
                "the watch of {} from version {} to {} missed {version}: {write:?}",
                session.client,
                session.from,
                session.until
            );
        }
        Ok(())
    }

    /// A list shows each key as it was at its version.
    pub(super) fn check_list(&self, list: &List) -> Result<()> {
        for (name, key) in &self.keys {
            let until = ..=(list.version, false);
            let state = key.range(until).next_back();
            let version = state.and_then(|(place, writer)| writer.map(|_| place.0));
            let shown = list.items.get(*name).map(|item| item.1);
            // When an unseen deletion was is known only so far.
            let unsure = shown.is_none() || shown == state.map(|(place, _)| place.0);
            let unseen = state.map(|(place, _)| (place.0, true));
            let unseen = unseen.is_some_and(|place| key.contains_key(&place));
            ensure!(
                shown == version || (unsure && unseen),
                "the list of {} at version {} shows version {shown:?} of {name}, which is {state:?}",
                list.client,
                list.version
            );
        }
        let foreign = list.items.iter().find(|(_, item)| item.1 > list.version);
        ensure!(
            foreign.is_none(),
            "the list of {} at version {} shows {foreign:?}",
            list.client,
            list.version
        );
        Ok(())
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.keys.keys().copied()
    }

    /// The order of a key that somebody wrote.
    pub(super) fn key(&self, name: &str) -> Result<&KeyOrder<'a>> {
        let key = self.keys.get(name);
        key.with_context(|| format!("nobody saw {name}"))
    }

    /// Place of a write that somebody saw, or that was acknowledged.
    pub(super) fn place_of(&self, one: &Attempt) -> Option<Place> {
        let key = self.keys.get(one.name.as_str())?;
        if one.did != AttemptKind::Delete {
            let by =
                |writer: Option<&Attempt>| writer.is_some_and(|writer| std::ptr::eq(writer, one));
            let place = one.version.map(|version| (version, false));
            let found = || key.iter().find(|(_, writer)| by(**writer));
            return place.or_else(|| found().map(|(place, _)| *place));
        }
        // Of several that may have done it, one that was acknowledged did.
        let all = self.deletes.get(&(one.name.as_str(), one.expected?))?;
        let first = all.first().is_some_and(|first| std::ptr::eq(*first, one));
        let next = key.range((one.expected?, true)..).next();
        let next = next.filter(|(_, writer)| writer.is_none());
        next.filter(|_| first && one.outcome == Outcome::Done)
            .map(|(place, _)| *place)
    }

    /// The first place from `floor` on at which a key may have been absent.
    pub(super) fn first_absence(&self, name: &str, floor: Place) -> Option<Place> {
        let Some(key) = self.keys.get(name) else {
            return Some(floor);
        };
        if !matches!(key.get(&floor), Some(Some(_))) {
            return Some(floor);
        }
        let mut after = key.range(floor..);
        let deletion = after.find(|(_, writer)| writer.is_none());
        let last = key.last_key_value().map(|((version, _), _)| *version)?;
        let unseen = self.deletes.contains_key(&(name, last));
        let unseen = unseen.then_some((last, true));
        deletion.map(|(place, _)| *place).or(unseen)
    }
}
