//! The listing of a backup store, grouped by snapshots.

use super::name::{
    CLUSTER_STATE_FILE, DATA_FILE, MANIFEST_FILE, META_FILE, named_part, named_time,
};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A snapshot is stored within this time after it was taken, seconds. Later, it was copied, or a clock was wrong.
const STORED_WITHIN: i64 = 60 * 60;

/// A snapshot as the listing of its store shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredSnapshot {
    /// Its name, the folder of its objects.
    pub name: String,
    /// True if it has a manifest: it is complete and ours.
    pub has_manifest: bool,
    /// True if it has etcd-manager's description.
    pub has_meta: bool,
    /// True if it has its compressed file.
    pub has_data: bool,
    /// Bytes of the compressed file.
    pub compressed_bytes: u64,
    /// When its youngest object was written, by the store's clock, Unix seconds. Parts of changes, which are written long after, do not count.
    pub written: Option<i64>,
    /// How long ago that was, by the store's clock.
    pub age: Option<Duration>,
    /// Keys of its objects that this release knows, those of its parts too.
    pub keys: Vec<String>,
    /// The parts of the changes after it, by their sequence numbers.
    pub parts: Vec<StoredPart>,
}

/// A part of the changes after a snapshot as the listing of its store shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredPart {
    /// Its place in the chain, from 1 on.
    pub sequence: u32,
    /// Bytes of the object.
    pub bytes: u64,
    /// When it was written, by the store's clock, Unix seconds.
    pub written: Option<i64>,
    /// How long ago that was, by the store's clock.
    pub age: Option<Duration>,
}

impl StoredSnapshot {
    /// When it was taken, Unix seconds: when it was written, or before, if its name says so. What copies a store writes all objects anew.
    /// A name with a time after that is of a wrong clock, and says nothing.
    pub fn taken(&self) -> Option<i64> {
        self.taken_at(named_time(&self.name))
    }

    /// As [`Self::taken`], with the time that somebody's clock had, such as that in its manifest.
    pub fn taken_at(&self, said: Option<i64>) -> Option<i64> {
        let written = self.written?;
        let earlier = said.filter(|said| written.saturating_sub(*said) > STORED_WITHIN);
        Some(earlier.unwrap_or(written))
    }

    /// The keys of its objects in the order in which they are deleted: without its manifest, the rest counts for nothing. Its file is the
    /// last, so that what an interrupted deletion leaves is still known as an unfinished snapshot.
    pub fn keys_to_delete(&self) -> Vec<String> {
        let order = [MANIFEST_FILE, META_FILE];
        let place = |key: &String| {
            let first = order.iter().position(|file| key.ends_with(*file));
            first.unwrap_or(order.len() + usize::from(key.ends_with(DATA_FILE)))
        };
        let mut keys = self.keys.clone();
        keys.sort_by_key(place);
        keys
    }

    /// The parts that follow each other from the first on. What is behind a missing one cannot be reached.
    pub fn usable_parts(&self) -> &[StoredPart] {
        let numbered = self.parts.iter().zip(1_u32..);
        let follows = numbered.take_while(|(part, sequence)| part.sequence == *sequence);
        self.parts.get(..follows.count()).unwrap_or_default()
    }

    /// The sequence numbers of missing parts, before ones that are there.
    pub fn gaps(&self) -> Vec<RangeInclusive<u32>> {
        let (mut gaps, mut expected) = (Vec::new(), 1_u32);
        for part in &self.parts {
            if part.sequence > expected {
                gaps.push(expected..=part.sequence - 1);
            }
            expected = part.sequence.saturating_add(1);
        }
        gaps
    }

    /// True if nothing but parts is left of it. They are of no use.
    pub fn is_only_parts(&self) -> bool {
        !self.parts.is_empty() && self.keys.len() == self.parts.len()
    }
}

/// An object of a listing: key, bytes, time of writing (Unix seconds) and age, both by the store's clock.
pub type ListedObject<'a> = (&'a str, u64, Option<i64>, Option<Duration>);

/// Groups a listing of a backup store by snapshots, sorted by name. Objects that are in no folder of a snapshot are left out.
pub fn group_snapshots<'a>(
    listed: impl IntoIterator<Item = ListedObject<'a>>,
) -> Vec<StoredSnapshot> {
    let mut found: BTreeMap<&str, StoredSnapshot> = BTreeMap::new();
    for (key, bytes, written, age) in listed {
        let Some((name, file)) = key.split_once('/') else {
            continue;
        };
        let part = named_part(file);
        let is_own = [DATA_FILE, META_FILE, MANIFEST_FILE, CLUSTER_STATE_FILE].contains(&file);
        if !is_own && part.is_none() {
            continue;
        }
        let one = found.entry(name).or_default();
        name.clone_into(&mut one.name);
        let is_first = one.keys.len() == one.parts.len();
        one.keys.push(key.to_owned());
        let known = written.zip(age);
        if let Some(sequence) = part {
            let (written, age) = known.unzip();
            one.parts.push(StoredPart {
                sequence,
                bytes,
                written,
                age,
            });
            continue;
        }
        match file {
            DATA_FILE => (one.has_data, one.compressed_bytes) = (true, bytes),
            META_FILE => one.has_meta = true,
            MANIFEST_FILE => one.has_manifest = true,
            _ => {}
        }
        // A time that is not known is that of now.
        let before = (one.written, one.age);
        (one.written, one.age) = match (is_first, before.0.zip(before.1), known) {
            (true, _, known) => known.unzip(),
            (_, Some(before), Some(known)) => {
                (Some(before.0.max(known.0)), Some(before.1.min(known.1)))
            }
            _ => (None, None),
        };
    }
    let mut all: Vec<StoredSnapshot> = found.into_values().collect();
    for one in &mut all {
        one.parts.sort_by_key(|part| part.sequence);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::name::changes_key;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_listing_is_grouped_by_folders_and_foreign_objects_are_left_out() {
        let age = Some(Duration::from_secs(5));
        let listed = [
            ("a/etcd.backup.gz", 9, Some(10), age),
            ("a/manifest.json", 1, Some(15), Some(Duration::ZERO)),
            ("b/etcd.backup.gz", 7, Some(10), age),
            ("b/_etcd_backup.meta", 1, None, None),
            ("b/sub/manifest.json", 1, Some(10), age),
            ("control/etcd-cluster-created", 1, Some(10), age),
            ("readme", 1, Some(10), age),
        ];
        let found = group_snapshots(listed);
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(found[0].has_manifest && !found[1].has_manifest);
        assert_eq!(
            (found[0].written, found[0].age),
            (Some(15), Some(Duration::ZERO))
        );
        assert_eq!((found[1].written, found[1].age), (None, None));
        assert_eq!(found[0].compressed_bytes, 9);
    }

    proptest! {
        /// Parts are written for as long as no newer snapshot has its own: they make one neither younger nor of another kind.
        #[test]
        fn parts_change_nothing_of_a_snapshot_but_what_is_deleted_with_it(
            files in proptest::sample::subsequence(vec![DATA_FILE, META_FILE, MANIFEST_FILE, CLUSTER_STATE_FILE], 0..=4),
            times in proptest::collection::vec(proptest::option::of(0..1000_i64), 4),
            parts in proptest::collection::btree_map(1..12_u32, proptest::option::of(0..1000_i64), 0..8),
            turn in any::<proptest::sample::Index>(),
        ) {
            let age = |written: i64| Duration::from_secs(1000 - u64::try_from(written).unwrap());
            let object = |key: String, written: Option<i64>| (key, 7_u64, written, written.map(age));
            let own = files.iter().zip(&times).map(|(file, written)| object(format!("a/{file}"), *written));
            let own: Vec<_> = own.collect();
            let of_parts = parts.iter().map(|(sequence, written)| object(changes_key("a", *sequence), *written));
            let mut all: Vec<_> = own.iter().cloned().chain(of_parts).collect();
            if !all.is_empty() {
                let middle = turn.index(all.len());
                all.rotate_left(middle);
            }
            let group = |objects: &[(String, u64, Option<i64>, Option<Duration>)]| {
                let listed = objects.iter().map(|(key, bytes, written, age)| (key.as_str(), *bytes, *written, *age));
                group_snapshots(listed).pop().unwrap_or_default()
            };
            let (with, without) = (group(&all), group(&own));
            prop_assert_eq!(with.is_only_parts(), own.is_empty() && !parts.is_empty());
            let mut deleted = with.keys_to_delete();
            prop_assert!(!with.has_manifest || deleted[0] == "a/manifest.json");
            prop_assert!(!with.has_data || deleted[deleted.len() - 1] == "a/etcd.backup.gz");
            let mut listed: Vec<String> = all.into_iter().map(|(key, ..)| key).collect();
            deleted.sort();
            listed.sort();
            prop_assert_eq!(deleted, listed);

            let found: Vec<u32> = with.parts.iter().map(|part| part.sequence).collect();
            let expected: Vec<u32> = parts.keys().copied().collect();
            prop_assert_eq!(&found, &expected);
            let missing: Vec<u32> = with.gaps().into_iter().flatten().collect();
            let last = expected.last().copied().unwrap_or(0);
            let complement: Vec<u32> = (1..=last).filter(|one| !expected.contains(one)).collect();
            prop_assert_eq!(&missing, &complement);
            let usable = missing.first().map_or(expected.len(), |first| *first as usize - 1);
            prop_assert_eq!(with.usable_parts(), &with.parts[..usable]);

            let left = StoredSnapshot { name: without.name.clone(), keys: without.keys.clone(), parts: Vec::new(), ..with };
            prop_assert_eq!(left, without);
        }
    }
}
