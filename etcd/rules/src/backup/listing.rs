//! The listing of a backup store, grouped by snapshots.

use super::name::{CLUSTER_STATE_FILE, DATA_FILE, MANIFEST_FILE, META_FILE, named_time};
use std::collections::BTreeMap;
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
    /// When its youngest object was written, by the store's clock, Unix seconds.
    pub written: Option<i64>,
    /// How long ago that was, by the store's clock.
    pub age: Option<Duration>,
    /// Keys of its objects that this release knows.
    pub keys: Vec<String>,
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

    /// The keys of its objects in the order in which they are deleted: without its manifest, the rest counts for nothing.
    pub fn keys_to_delete(&self) -> Vec<String> {
        let mut keys = self.keys.clone();
        keys.sort_by_key(|key| !key.ends_with(MANIFEST_FILE));
        keys
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
        if ![DATA_FILE, META_FILE, MANIFEST_FILE, CLUSTER_STATE_FILE].contains(&file) {
            continue;
        }
        let is_first = !found.contains_key(name);
        let one = found.entry(name).or_default();
        name.clone_into(&mut one.name);
        one.keys.push(key.to_owned());
        match file {
            DATA_FILE => (one.has_data, one.compressed_bytes) = (true, bytes),
            META_FILE => one.has_meta = true,
            MANIFEST_FILE => one.has_manifest = true,
            _ => {}
        }
        // A time that is not known is that of now.
        let (before, known) = ((one.written, one.age), written.zip(age));
        (one.written, one.age) = match (is_first, before.0.zip(before.1), known) {
            (true, _, known) => known.unzip(),
            (_, Some(before), Some(known)) => {
                (Some(before.0.max(known.0)), Some(before.1.min(known.1)))
            }
            _ => (None, None),
        };
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
