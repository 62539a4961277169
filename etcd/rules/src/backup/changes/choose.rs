//! Chooses what a restore takes: the newest moment not after a time, which is a snapshot and some of the parts after it. Times are those of
//! the store's clock alone. Which of two snapshots is newer, their revisions say.

use crate::backup::found::FoundSnapshot;
use crate::backup::listing::StoredPart;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Up to when a restore goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreTime {
    /// As far as anything is stored.
    Latest,
    /// No later than this time by the store's clock, Unix seconds. An object whose time is not known is later.
    NotAfter(i64),
}

/// What a restore takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestorePoint {
    /// Name of the snapshot.
    pub snapshot: String,
    /// How many parts are replayed, from the first one on.
    pub parts: u32,
    /// Bytes of these parts, as they are stored.
    pub part_bytes: u64,
    /// The moment of the data, by the store's clock, Unix seconds: when the last part was written, which was closed some seconds before; of a
    /// snapshot alone, when it was begun. `None`: the store does not say.
    pub moment: Option<i64>,
    /// How long ago that was, by the store's clock.
    pub age: Option<Duration>,
}

/// Parts that nobody can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainGap {
    /// Name of the snapshot.
    pub snapshot: String,
    /// The sequence numbers that are missing.
    pub missing: RangeInclusive<u32>,
    /// How many parts are behind them, written not after the asked time.
    pub behind: usize,
}

/// What was chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChosenPoint {
    /// `None`: no verified snapshot of the etcd cluster was written until then.
    pub point: Option<RestorePoint>,
    /// The snapshot with the highest revision, if the parts of an older one were chosen because they were written after it. If their last
    /// revision turns out to be lower, this one is newer: an upload may have taken long.
    pub other: Option<RestorePoint>,
    /// What keeps the restore from a later moment, or may have.
    pub gaps: Vec<ChainGap>,
}

impl fmt::Display for ChainGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (snapshot, behind) = (&self.snapshot, self.behind);
        let (first, last) = (self.missing.start(), self.missing.end());
        let (parts, are) = match first == last {
            true => (format!("part {first}"), "is"),
            false => (format!("parts {first} to {last}"), "are"),
        };
        write!(
            f,
            "{parts} of the changes after {snapshot} {are} missing: {behind} behind cannot be reached"
        )
    }
}

impl RestoreTime {
    /// True if what was written then can be taken.
    fn allows(self, written: Option<i64>) -> bool {
        match self {
            Self::Latest => true,
            Self::NotAfter(time) => written.is_some_and(|written| written <= time),
        }
    }
}

/// A snapshot that can be taken, with the parts that can be replayed after it.
struct Candidate<'a> {
    found: &'a FoundSnapshot,
    revision: u64,
    parts: &'a [StoredPart],
    moment: Option<i64>,
    age: Option<Duration>,
}

impl<'a> Candidate<'a> {
    /// `None`: it is not verified, of another etcd cluster, or too new. Nobody knows of which one an imported snapshot is.
    fn of(found: &'a FoundSnapshot, cluster_id: &str, until: RestoreTime) -> Option<Self> {
        let (stored, manifest) = (&found.stored, found.manifest.as_ref()?);
        let verified = manifest.verified.as_ref()?;
        let is_own = manifest.cluster_id.as_deref() == Some(cluster_id);
        if !is_own || !found.is_verified() || !until.allows(stored.written) {
            return None;
        }
        let usable = stored.usable_parts();
        let allowed = usable.iter().take_while(|part| until.allows(part.written));
        let parts = usable.get(..allowed.count()).unwrap_or_default();
        // Its data is of before its verification, which the manifest says the length of. Meanwhile the parts of the one before went on.
        let seconds = i64::try_from(verified.seconds).unwrap_or(i64::MAX);
        let begun = stored
            .written
            .map(|written| written.saturating_sub(seconds));
        let before = Duration::from_secs(verified.seconds);
        let begun_age = stored.age.map(|age| age.saturating_add(before));
        Some(Self {
            found,
            revision: verified.revision,
            parts,
            moment: parts
                .iter()
                .filter_map(|part| part.written)
                .chain(begun)
                .max(),
            age: parts
                .iter()
                .filter_map(|part| part.age)
                .chain(begun_age)
                .min(),
        })
    }

    /// True if the time of its parts says something. What copies a store writes all its objects anew, in any order.
    fn has_timed_parts(&self) -> bool {
        !self.parts.is_empty() && self.found.taken() == self.found.stored.written
    }

    fn point(&self) -> RestorePoint {
        RestorePoint {
            snapshot: self.found.name().to_owned(),
            parts: self.parts.last().map_or(0, |part| part.sequence),
            part_bytes: self
                .parts
                .iter()
                .fold(0_u64, |sum, part| sum.saturating_add(part.bytes)),
            moment: self.moment,
            age: self.age,
        }
    }

    /// The first gap, if parts behind it would be replayed.
    fn gap(&self, until: RestoreTime) -> Option<ChainGap> {
        let stored = &self.found.stored;
        let missing = stored.gaps().into_iter().next()?;
        let behind = stored
            .parts
            .iter()
            .filter(|part| part.sequence > *missing.end());
        let behind = behind.filter(|part| until.allows(part.written)).count();
        (behind > 0).then(|| ChainGap {
            snapshot: self.found.name().to_owned(),
            missing,
            behind,
        })
    }
}

/// Chooses the newest moment not after a time, from all snapshots of a complete listing: of those that are verified and of the etcd cluster
/// with this id (hex). It is the snapshot with the highest revision and all parts after it. The parts of an older snapshot are newer if they
/// were written later: they go on until the new one has its own.
pub fn choose_restore_point(
    all: &[FoundSnapshot],
    cluster_id: &str,
    until: RestoreTime,
) -> ChosenPoint {
    let candidates = all
        .iter()
        .filter_map(|one| Candidate::of(one, cluster_id, until));
    let candidates: Vec<Candidate<'_>> = candidates.collect();
    let place = |one: &&Candidate<'_>| (one.revision, one.moment, one.found.name().to_owned());
    let Some(highest) = candidates.iter().max_by_key(place) else {
        return ChosenPoint::default();
    };
    // A time that is not known is that of now.
    let is_later = |one: &&Candidate<'_>| {
        let known = highest.moment;
        one.has_timed_parts() && known.is_some_and(|known| one.moment > Some(known))
    };
    let later = candidates.iter().filter(is_later);
    let later = later.max_by_key(|one| (one.moment, place(one)));
    let chosen = later.unwrap_or(highest);
    let newer = candidates
        .iter()
        .filter(|one| one.revision >= chosen.revision);
    ChosenPoint {
        point: Some(chosen.point()),
        other: later.map(|_| highest.point()),
        gaps: newer.filter_map(|one| one.gap(until)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::listing::group_snapshots;
    use crate::backup::manifest::SnapshotManifest;
    use crate::backup::name::{changes_key, data_key, manifest_key};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const OWN: &str = "cdf818194e3a8c32";
    const NOW: i64 = 50_000_000;

    /// A snapshot and when its parts were written.
    #[derive(Clone, Debug)]
    struct Stored {
        revision: u64,
        written: Option<i64>,
        /// How long its verification took.
        seconds: u64,
        is_verified: bool,
        is_own: bool,
        parts: BTreeMap<u32, Option<i64>>,
    }

    /// As its store and its manifest show it. `name`: that of a snapshot that somebody asked for.
    fn show(name: &str, one: &Stored) -> FoundSnapshot {
        let age = |written: i64| Duration::from_secs(u64::try_from(NOW - written).unwrap());
        let object = |key: String, written: Option<i64>| (key, 3, written, written.map(age));
        let own = [data_key(name), manifest_key(name)].map(|key| object(key, one.written));
        let parts = one
            .parts
            .iter()
            .map(|(sequence, written)| object(changes_key(name, *sequence), *written));
        let objects: Vec<_> = own.into_iter().chain(parts).collect();
        let listed = objects
            .iter()
            .map(|(key, bytes, written, age)| (key.as_str(), *bytes, *written, *age));
        let stored = group_snapshots(listed).pop().unwrap();
        let verified = format!(
            r#","verified":{{"at":"","revision":{},"compacted":0,"hash":0,"keys":0,"seconds":{}}}"#,
            one.revision, one.seconds
        );
        let text = format!(
            r#"{{"format":1,"name":"{name}","cluster":"c","etcd":"main","reason":"schedule","takenAt":"","clusterId":"{}","bytes":1,
            "sha256":"","compressedBytes":1,"compressedSha256":"","kctlVersion":"0.1.0"{}}}"#,
            if one.is_own { OWN } else { "0123456789abcdef" },
            if one.is_verified { &*verified } else { "" },
        );
        FoundSnapshot {
            stored,
            manifest: Some(SnapshotManifest::parse("manifest", text.as_bytes()).unwrap()),
            problem: None,
        }
    }

    fn show_all(all: &[Stored]) -> Vec<FoundSnapshot> {
        let numbered = all.iter().enumerate();
        numbered
            .map(|(number, one)| show(&format!("s{number}"), one))
            .collect()
    }

    fn stored() -> impl Strategy<Value = Stored> {
        let time = || proptest::option::weighted(0.9, 0..1000_i64);
        let part_times = proptest::collection::btree_map(1..8_u32, time(), 0..7);
        let often = proptest::bool::weighted(0.8);
        (0..5_u64, time(), 0..100_u64, often, often, part_times).prop_map(
            |(revision, written, seconds, is_verified, is_own, parts)| Stored {
                revision,
                written,
                seconds,
                is_verified,
                is_own,
                parts,
            },
        )
    }

    fn times() -> impl Strategy<Value = RestoreTime> {
        prop_oneof![
            Just(RestoreTime::Latest),
            (0..1000_i64).prop_map(RestoreTime::NotAfter),
        ]
    }

    proptest! {
        /// In any store: only snapshots that can be trusted, only chains without a gap, and nothing that was written after the time.
        #[test]
        fn what_is_chosen_was_written_until_then_and_has_no_gap(
            all in proptest::collection::vec(stored(), 0..6), until in times(),
        ) {
            let shown = show_all(&all);
            let chosen = choose_restore_point(&shown, OWN, until);
            let can_be_taken = |one: &Stored| one.is_verified && one.is_own && until.allows(one.written);
            prop_assert_eq!(chosen.point.is_some(), all.iter().any(can_be_taken));
            for point in chosen.point.iter().chain(&chosen.other) {
                let place = shown.iter().position(|one| one.name() == point.snapshot).unwrap();
                prop_assert!(can_be_taken(&all[place]));
                for sequence in 1..=point.parts {
                    let written = all[place].parts.get(&sequence);
                    prop_assert!(written.is_some_and(|written| until.allows(*written)), "{sequence}");
                }
            }
        }

        /// No time that a part may have, and no gap before it, keeps a restore from what was there before.
        #[test]
        fn a_part_that_is_added_never_makes_the_result_older(
            all in proptest::collection::vec(stored(), 1..6), until in times(),
            to in any::<proptest::sample::Index>(), sequence in 1..9_u32, written in proptest::option::of(0..1000_i64),
        ) {
            let before = choose_restore_point(&show_all(&all), OWN, until);
            let (mut all, to) = (all.clone(), to.index(all.len()));
            all[to].parts.entry(sequence).or_insert(written);
            let after = choose_restore_point(&show_all(&all), OWN, until);
            prop_assert_eq!(before.point.is_some(), after.point.is_some());
            if let (Some(before), Some(after)) = (before.point, after.point) {
                prop_assert!(before.moment.is_none() || before.moment <= after.moment, "{before:?} {after:?}");
            }
        }
    }

    fn good(revision: u64, written: i64, parts: &[(u32, i64)]) -> Stored {
        let parts = parts
            .iter()
            .map(|(sequence, written)| (*sequence, Some(*written)));
        Stored {
            revision,
            written: Some(written),
            seconds: 60,
            is_verified: true,
            is_own: true,
            parts: parts.collect(),
        }
    }

    /// Name of the snapshot, parts and moment.
    fn chosen(all: &[Stored], until: RestoreTime) -> (String, u32, Option<i64>) {
        let point = choose_restore_point(&show_all(all), OWN, until)
            .point
            .unwrap();
        (point.snapshot, point.parts, point.moment)
    }

    /// While a snapshot is verified and uploaded, the changes go to the parts of the one before, which are newer than its data.
    #[test]
    fn the_chain_before_a_new_snapshot_is_taken_until_that_one_has_its_own() {
        let mut all = [
            good(10, 1000, &[(1, 1005), (2, 1010), (3, 1900)]),
            good(20, 1905, &[]),
        ];
        for (until, expected) in [
            (1004, ("s0", 0, 940)),
            (1005, ("s0", 1, 1005)),
            (1899, ("s0", 2, 1010)),
            (1904, ("s0", 3, 1900)),
            (1905, ("s0", 3, 1900)),
            (5000, ("s0", 3, 1900)),
        ] {
            let (name, parts, moment) = expected;
            let found = chosen(&all, RestoreTime::NotAfter(until));
            assert_eq!(found, (name.to_owned(), parts, Some(moment)), "{until}");
        }
        // Who has read the parts knows which of the two has the higher revision.
        let latest = choose_restore_point(&show_all(&all), OWN, RestoreTime::Latest);
        assert_eq!(latest.other.unwrap().snapshot, "s1");
        all[1].parts.insert(1, Some(1907));
        let latest = choose_restore_point(&show_all(&all), OWN, RestoreTime::Latest);
        assert_eq!(
            (latest.point.unwrap().snapshot.as_str(), latest.other),
            ("s1", None)
        );
        // Without parts for long, a snapshot is newer than the chain before it.
        let all = [good(10, 1000, &[(1, 1005)]), good(20, 1905, &[])];
        assert_eq!(
            chosen(&all, RestoreTime::Latest),
            ("s1".to_owned(), 0, Some(1845))
        );
    }

    #[test]
    fn a_missing_part_ends_the_chain_and_is_said() {
        let all = [good(10, 1000, &[(1, 1005), (4, 1020), (5, 1025)])];
        for (until, gap) in [
            (1019, None),
            (
                1020,
                Some(
                    "parts 2 to 3 of the changes after s0 are missing: 1 behind cannot be reached",
                ),
            ),
            (
                2000,
                Some(
                    "parts 2 to 3 of the changes after s0 are missing: 2 behind cannot be reached",
                ),
            ),
        ] {
            let found = choose_restore_point(&show_all(&all), OWN, RestoreTime::NotAfter(until));
            let gaps: Vec<String> = found.gaps.iter().map(ChainGap::to_string).collect();
            let expected: Vec<&str> = gap.into_iter().collect();
            assert_eq!(gaps, expected, "{until}");
            assert_eq!(found.point.unwrap().parts, 1);
        }
    }

    /// A copy is written at once, in any order: the chain of an old snapshot may have been written last.
    #[test]
    fn in_a_copied_store_revisions_say_what_is_newest() {
        let copied = 400 * 24 * 3600;
        let old = good(10, copied, &[(1, copied + 900)]);
        let new = good(20, copied + 5, &[(1, copied + 6)]);
        for (names, newest) in [
            (
                ["1970-01-01T00:00:00Z-000001", "1970-01-01T00:15:00Z-000002"],
                1,
            ),
            // Nothing says that these were copied.
            (["one", "two"], 0),
        ] {
            let shown = [show(names[0], &old), show(names[1], &new)];
            let chosen = choose_restore_point(&shown, OWN, RestoreTime::Latest);
            assert_eq!(chosen.point.unwrap().snapshot, names[newest]);
        }
    }
}
