//! A snapshot with what its manifest says, and which one is the newest that can be restored.

use super::listing::StoredSnapshot;
use super::manifest::SnapshotManifest;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A snapshot in a backup store.
#[derive(Clone, Debug)]
pub struct FoundSnapshot {
    pub stored: StoredSnapshot,
    /// `None`: there is none, or see `problem`.
    pub manifest: Option<SnapshotManifest>,
    /// Why nobody knows what its manifest says.
    pub problem: Option<Unread>,
}

/// Why nobody knows what a manifest says. Each has the reason.
#[derive(Clone, Debug)]
pub enum Unread {
    /// It is damaged, or of something else.
    Unusable(String),
    /// It could not be read now. What it says may be good.
    Unreachable(String),
}

impl Unread {
    /// The reason.
    pub fn text(&self) -> &str {
        match self {
            Self::Unusable(why) | Self::Unreachable(why) => why,
        }
    }
}

impl FoundSnapshot {
    /// The name of the folder of its objects.
    pub fn name(&self) -> &str {
        &self.stored.name
    }

    /// What a sentence about it ends with while nobody knows what its manifest says: `, as far as is known: REASON`; else nothing.
    pub fn doubt(&self) -> String {
        let why = self.problem.as_ref().map(Unread::text);
        why.map_or_else(String::new, |why| format!(", as far as is known: {why}"))
    }

    /// True if it is complete, and a scratch etcd has read it.
    pub fn is_verified(&self) -> bool {
        let manifest = self.manifest.as_ref();
        self.stored.has_data && manifest.is_some_and(|manifest| manifest.verified.is_some())
    }

    /// True if somebody brought it from a file: it may be older than all others, whatever its times say.
    pub fn is_imported(&self) -> bool {
        let manifest = self.manifest.as_ref();
        manifest.is_some_and(SnapshotManifest::is_imported)
    }

    /// True if it is verified, as far as is known.
    pub fn may_be_verified(&self) -> bool {
        let is_unread = matches!(self.problem, Some(Unread::Unreachable(_)));
        self.is_verified() || self.stored.has_data && is_unread
    }

    /// When it was taken, Unix seconds, by the store's clock: before it was written, if its manifest says so.
    pub fn taken(&self) -> Option<i64> {
        let said = self.manifest.as_ref().and_then(|manifest| {
            let at = OffsetDateTime::parse(&manifest.taken_at, &Rfc3339).ok()?;
            Some(at.unix_timestamp())
        });
        self.stored
            .taken_at(said)
            .min(self.stored.taken())
            .or(self.stored.written)
    }

    /// How long ago it was taken, by the store's clock.
    pub fn age(&self) -> Option<Duration> {
        let before = self.stored.written?.saturating_sub(self.taken()?);
        let before = u64::try_from(before).unwrap_or_default();
        Some(self.stored.age?.saturating_add(Duration::from_secs(before)))
    }

    /// Revision of its data, if known.
    pub fn revision(&self) -> Option<u64> {
        let verified = self.manifest.as_ref()?.verified.as_ref()?;
        Some(verified.revision)
    }

    /// True for the newest verified snapshot of a complete listing, by the time of writing or by when it was taken. One whose manifest
    /// cannot be read now may be. One that was imported is older than all others, because nobody knows when its data was current.
    pub fn is_newest_verified(&self, all: &[Self]) -> bool {
        let orders: [fn(&Self) -> Option<i64>; 2] = [|one| one.stored.written, Self::taken];
        self.may_be_verified()
            && orders.into_iter().any(|time| {
                let place = |of: &Self| {
                    let times = (time(of), of.stored.written);
                    (!of.is_imported(), times, of.stored.name.clone())
                };
                let others = all.iter().filter(|other| other.is_verified());
                others.map(place).max() <= Some(place(self))
            })
    }
}

/// Sorts snapshots, the newest first.
pub fn sort_newest_first(all: &mut [FoundSnapshot]) {
    let key = |one: &FoundSnapshot| (one.taken(), one.stored.written, one.stored.name.clone());
    all.sort_by_cached_key(|one| std::cmp::Reverse(key(one)));
}

/// The newest snapshot that a scratch etcd has read, of a listing with the newest first; one that was imported only if there is no other. If
/// newer ones cannot be used, `warn` is told of them.
pub fn newest_verified(all: &[FoundSnapshot], warn: impl Fn(&str)) -> Option<&FoundSnapshot> {
    let mut imported = None;
    for one in all {
        if one.is_verified() && one.is_imported() {
            imported.get_or_insert(one);
        } else if one.is_verified() {
            return Some(one);
        } else if let Some(problem) = &one.problem {
            warn(&format!(
                "{} is passed over: {}",
                one.name(),
                problem.text()
            ));
        }
    }
    imported
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A verified snapshot, unless its manifest cannot be read.
    fn snapshot(name: &str, written: i64, problem: Option<Unread>) -> FoundSnapshot {
        let manifest = json!({
            "format": 1, "name": name, "cluster": "x.example.com", "etcd": "main", "reason": "schedule", "takenAt": "", "bytes": 1,
            "sha256": "", "compressedBytes": 1, "compressedSha256": "", "kctlVersion": "1",
            "verified": {"at": "", "revision": 1, "compacted": 1, "hash": 1, "keys": 1, "seconds": 1},
        });
        let manifest = serde_json::from_value(manifest).unwrap();
        FoundSnapshot {
            stored: StoredSnapshot {
                name: name.to_owned(),
                has_manifest: true,
                has_data: true,
                written: Some(written),
                ..StoredSnapshot::default()
            },
            manifest: problem.is_none().then_some(manifest),
            problem,
        }
    }

    /// S3 denies a manifest, or does not answer: nobody knows which snapshot is the last that can be restored, so each that may be stays.
    #[test]
    fn what_cannot_be_read_now_may_be_the_newest_and_takes_no_others_place() {
        let unread = || Some(Unread::Unreachable("denied".to_owned()));
        let damaged = || Some(Unread::Unusable("empty".to_owned()));
        for (older, newer, stay) in [
            (None, None, [false, true]),
            (None, unread(), [true, true]),
            (unread(), None, [false, true]),
            (unread(), unread(), [true, true]),
            (None, damaged(), [true, false]),
            (damaged(), None, [false, true]),
        ] {
            let all = [snapshot("older", 1, older), snapshot("newer", 2, newer)];
            let newest = all.each_ref().map(|one| one.is_newest_verified(&all));
            assert_eq!(newest, stay, "{all:?}");
        }
    }
}
