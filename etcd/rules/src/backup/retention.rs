//! Decides which snapshots are deleted. A snapshot has two times: when the store wrote it, and when its name says that it was taken. A copy
//! of a store was written all at once, and names are of any clock, so only what neither of the two keeps is deleted.

use super::listing::StoredSnapshot;
use super::name::is_scheduled;
use node::backup::Retention;
use std::collections::BTreeSet;
use std::time::Duration;

/// An unfinished snapshot is deleted after this time, and so are parts of changes whose snapshot is gone.
const UNFINISHED: Duration = Duration::from_hours(24);

/// So many snapshots are deleted at once at most, unless somebody asks for it.
const MOST_AT_ONCE: usize = 100;

/// So few are deleted even if they are more than half: a young store has not many.
const FEW: usize = 4;

const HOUR: i64 = 60 * 60;
const DAY: i64 = 24 * HOUR;

/// A time of a snapshot, Unix seconds.
type TimeOf = fn(&StoredSnapshot) -> Option<i64>;

/// The times by which snapshots are ordered.
const TIMES: [TimeOf; 2] = [|one| one.written, StoredSnapshot::taken];

/// The scheduled snapshots after this one, from a complete listing: by the time of writing, and by that in names. If one is of another etcd
/// cluster by etcd's id (their manifests say), this one is the last of a cluster that was lost or given up, and is not deleted.
pub fn find_successors<'a>(
    all: &'a [StoredSnapshot],
    one: &StoredSnapshot,
) -> Vec<&'a StoredSnapshot> {
    let after = |time: TimeOf| {
        let place = |of: &StoredSnapshot| (time(of), of.name.clone());
        let later = find_complete(all).filter(|other| place(other) > place(one));
        later.min_by_key(|other| place(other))
    };
    let mut found: Vec<&StoredSnapshot> = TIMES.into_iter().filter_map(after).collect();
    found.dedup();
    found
}

/// The scheduled snapshots that can be restored, and whose age is known.
fn find_complete(all: &[StoredSnapshot]) -> impl Iterator<Item = &StoredSnapshot> {
    all.iter().filter(|one| {
        is_scheduled(&one.name)
            && one.has_manifest
            && one.has_data
            && one.written.is_some()
            && one.age.is_some()
    })
}

/// The scheduled snapshots that are not kept any more, from a complete listing. The newest verified one is never among them, and neither
/// is one that somebody asked for, one of etcd-manager, or one whose age is not known.
pub fn choose_deletions(all: &[StoredSnapshot], retention: Retention) -> Vec<&StoredSnapshot> {
    let kept: BTreeSet<&str> = TIMES
        .into_iter()
        .flat_map(|time| choose_kept(all, retention, time))
        .collect();
    let is_superfluous = |one: &&StoredSnapshot| match (one.has_manifest, one.has_data) {
        (true, true) => one.age.is_some() && !kept.contains(one.name.as_str()),
        // It cannot be restored, and takes the place of none that can.
        (true, false) => false,
        // Somebody may have written them while their snapshot was deleted.
        (false, false) if one.is_only_parts() => {
            let mut ages = one.parts.iter().map(|part| part.age);
            ages.all(|age| age.is_some_and(|age| age >= UNFINISHED))
        }
        (false, has_data) => {
            has_data && !one.has_meta && one.age.is_some_and(|age| age >= UNFINISHED)
        }
    };
    let scheduled = all.iter().filter(|one| is_scheduled(&one.name));
    let mut deleted: Vec<&StoredSnapshot> = scheduled.filter(is_superfluous).collect();
    deleted.sort_by_key(|one| (one.written, &one.name));
    deleted
}

/// The names of those that are kept by one of their times.
fn choose_kept(all: &[StoredSnapshot], retention: Retention, time: TimeOf) -> Vec<&str> {
    let timed = find_complete(all).filter_map(|one| {
        let (at, written, age) = (time(one)?, one.written?, one.age?);
        let before = u64::try_from(written.saturating_sub(at)).unwrap_or_default();
        Some((
            at,
            one.name.as_str(),
            age.saturating_add(Duration::from_secs(before)),
        ))
    });
    let mut timed: Vec<(i64, &str, Duration)> = timed.collect();
    timed.sort_unstable();
    // Scheduled ones were verified; one that somebody brought may not be, and is not deleted anyway. One whose age is not known may be
    // the newest, and is kept besides.
    let newest = timed.last().map(|(_, name, _)| *name);
    let (mut hours, mut days) = (BTreeSet::new(), BTreeSet::new());
    // Once the first of a day is deleted, another is the first: so all of a day, or an hour, grow too old at once.
    let is_kept_for = |period: i64, at: i64, age: Duration, kept_for: Duration| {
        let rest = u64::try_from(period - at.rem_euclid(period)).unwrap_or_default();
        age.saturating_sub(Duration::from_secs(rest)) < kept_for
    };
    let kept = timed.into_iter().filter(|(at, name, age)| {
        let first_of_hour = hours.insert(at.div_euclid(HOUR));
        let first_of_day = days.insert(at.div_euclid(DAY));
        *age < retention.all
            || first_of_hour && is_kept_for(HOUR, *at, *age, retention.hourly)
            || first_of_day && is_kept_for(DAY, *at, *age, retention.daily)
            || newest == Some(*name)
    });
    kept.map(|(_, name, _)| name).collect()
}

/// Checks that these deletions from a complete listing are so few that nobody has to look: a mistake in a setting, in a store or in times
/// would take most of the history. The error says how many they are.
pub fn check_extent(all: &[StoredSnapshot], deleted: &[&StoredSnapshot]) -> Result<(), String> {
    let of = find_complete(all).count();
    let many = deleted.iter().filter(|one| one.has_manifest).count();
    if many <= FEW || many <= MOST_AT_ONCE && many.saturating_mul(2) <= of {
        return Ok(());
    }
    Err(format!(
        "{many} of {of} scheduled snapshots are not kept any more: at most {MOST_AT_ONCE}, and no more than half, are deleted at once"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::listing::group_snapshots;
    use super::super::name::{changes_key, scheduled_name};
    use super::*;
    use proptest::prelude::*;
    use time::OffsetDateTime;

    fn snapshot(name: &str, now: i64, written: i64) -> StoredSnapshot {
        StoredSnapshot {
            name: name.to_owned(),
            has_manifest: true,
            has_meta: true,
            has_data: true,
            compressed_bytes: 1,
            written: Some(written),
            age: Some(Duration::from_secs(
                u64::try_from(now - written).unwrap_or(0),
            )),
            keys: Vec::new(),
            parts: Vec::new(),
        }
    }

    fn scheduled(number: u32, now: i64, written: i64) -> StoredSnapshot {
        named(number, now, written, written)
    }

    /// One whose name has another time than that of writing: it was copied, or the clock was wrong.
    fn named(number: u32, now: i64, written: i64, says: i64) -> StoredSnapshot {
        let time = OffsetDateTime::from_unix_timestamp(says).unwrap();
        snapshot(&scheduled_name(time, number), now, written)
    }

    const DEFAULT: Retention = Retention {
        all: Duration::from_hours(1),
        hourly: Duration::from_hours(7 * 24),
        daily: Duration::from_hours(90 * 24),
    };

    /// What copies a store writes all its objects anew, within some minutes.
    #[test]
    fn a_copied_store_keeps_its_history() {
        let now = 400 * DAY;
        let copy = |number: u32| {
            let (written, says) = (
                now - 2 * HOUR + i64::from(number),
                now - DAY * i64::from(number),
            );
            named(number, now, written, says)
        };
        let all: Vec<StoredSnapshot> = (1..=90).map(copy).collect();
        let deleted = choose_deletions(&all, DEFAULT);
        // By its name the oldest is 90 days old.
        assert!(deleted.len() <= 1, "{deleted:?}");
        // What is taken after is kept besides, and time goes on for what was copied.
        let later = now + 30 * DAY;
        let all: Vec<StoredSnapshot> = (1..=90)
            .map(copy)
            .map(|one| snapshot(&one.name, later, one.written.unwrap()))
            .chain([scheduled(200, later, later)])
            .collect();
        let left = all.len() - choose_deletions(&all, DEFAULT).len();
        assert!((60..=64).contains(&left), "{left}");
    }

    #[test]
    fn few_are_deleted_at_once() {
        let now = 400 * DAY;
        let all: Vec<StoredSnapshot> = (0..400).map(|one| scheduled(one, now, now)).collect();
        for (all, many, passes) in [
            (&all[..], 100, true),
            (&all[..], 101, false),
            (&all[..10], 5, true),
            (&all[..10], 6, false),
            (&all[..5], 4, true),
            (&all[..6], 5, false),
            (&all[..0], 0, true),
        ] {
            let deleted: Vec<&StoredSnapshot> = all.iter().take(many).collect();
            let checked = check_extent(all, &deleted);
            assert_eq!(checked.is_ok(), passes, "{many}: {checked:?}");
        }
    }

    /// Parts have no time of their snapshot any more, and are of no use without it.
    #[test]
    fn parts_without_a_snapshot_are_deleted_once_nobody_writes_more_of_them() {
        let name = scheduled_name(OffsetDateTime::UNIX_EPOCH, 1);
        let keys: Vec<String> = [1, 2].map(|part| changes_key(&name, part)).to_vec();
        let hours = |hours: u64| Some(Duration::from_hours(hours));
        for (older, younger, is_deleted) in [
            (hours(30), hours(24), true),
            (hours(30), hours(23), false),
            (hours(30), None, false),
        ] {
            let parts = [(&keys[0], older), (&keys[1], younger)];
            let objects = parts.map(|(key, age)| (key.as_str(), 1, Some(0), age));
            let all = group_snapshots(objects);
            let deleted = choose_deletions(&all, DEFAULT);
            assert_eq!(!deleted.is_empty(), is_deleted, "{younger:?}");
        }
    }

    fn periods() -> impl Strategy<Value = Retention> {
        (0..400_u64, 0..4000_u64).prop_map(|(hourly, daily)| Retention {
            all: Duration::from_hours(1),
            hourly: Duration::from_hours(hourly),
            daily: Duration::from_hours(daily),
        })
    }

    #[test]
    fn the_successor_is_the_next_one_that_was_taken_on_schedule() {
        let now = 400 * DAY;
        let mut asked = scheduled(3, now, 3);
        asked.name = "asked".to_owned();
        let mut damaged = scheduled(4, now, 4);
        damaged.has_data = false;
        let all = [
            scheduled(6, now, 6),
            scheduled(1, now, 1),
            damaged,
            asked,
            scheduled(5, now, 5),
        ];
        assert_eq!(find_successors(&all, &all[1]), [&all[4]]);
        assert_eq!(find_successors(&all, &all[4]), [&all[0]]);
        assert_eq!(find_successors(&all, &all[0]), [] as [&StoredSnapshot; 0]);
    }

    /// One that was brought is younger than the last that was taken, which is still the newest verified one.
    #[test]
    fn what_somebody_brought_does_not_take_the_place_of_the_newest_verified_one() {
        let now = 400 * DAY;
        let mut brought = scheduled(9, now, now);
        brought.name = "brought".to_owned();
        let all = [scheduled(1, now, 0), scheduled(2, now, DAY), brought];
        let retention = Retention {
            all: Duration::from_hours(1),
            hourly: Duration::ZERO,
            daily: Duration::ZERO,
        };
        assert_eq!(choose_deletions(&all, retention), [&all[0]]);
    }

    proptest! {
        #[test]
        fn the_newest_verified_one_and_what_was_asked_for_are_never_deleted(
            times in proptest::collection::vec((0..40_000_000_i64, 0..6_u8, any::<bool>()), 0..60),
            now in 0..40_000_000_i64, retention in periods(),
        ) {
            let all: Vec<StoredSnapshot> = times.iter().enumerate().map(|(number, (written, kind, known))| {
                let number = u32::try_from(number).unwrap();
                let mut one = scheduled(number, now, *written);
                match kind {
                    0 => one.name = format!("asked-{number}"),
                    1 => one.has_manifest = false,
                    2 => (one.has_manifest, one.has_meta) = (false, false),
                    _ => {}
                }
                if !known {
                    (one.written, one.age) = (None, None);
                }
                one
            }).collect();
            let deleted = choose_deletions(&all, retention);
            let verified = || all.iter().filter(|one| one.has_manifest);
            prop_assert!(verified().count() == 0 || verified().any(|one| !deleted.contains(&one)));
            let newest = verified().filter_map(|one| one.written).max();
            for one in deleted {
                prop_assert!(is_scheduled(&one.name));
                prop_assert!(one.age.unwrap() >= retention.all);
                prop_assert!(one.has_manifest || !one.has_meta);
                prop_assert!(!one.has_manifest || one.written <= newest);
                prop_assert!(!one.has_manifest || verified().any(|other| other != one && other.written >= one.written));
            }
        }

        /// Whatever names say, what one of the two times keeps is not deleted.
        #[test]
        fn a_wrong_name_costs_one_snapshot_too_many_and_never_one_too_few(
            times in proptest::collection::vec((0..600_000_i64, 0..1_200_000_i64), 0..60), retention in periods(),
        ) {
            let now = 40_000_000;
            // No two are of the same time.
            let unique = |(place, (written, says)): (i64, (i64, i64))| (written * 60 + place, says * 60 + place);
            let times: Vec<(i64, i64)> = (0..).zip(times).map(unique).collect();
            let make = |times: &[(i64, i64)]| -> Vec<StoredSnapshot> {
                let all = times.iter().enumerate();
                all.map(|(number, (written, says))| named(u32::try_from(number).unwrap(), now, *written, *says)).collect()
            };
            let all = make(&times);
            let deleted = choose_deletions(&all, retention);
            for truth in [|(written, _): (i64, i64)| written, |(written, says): (i64, i64)| if written - says > HOUR { says } else { written }] {
                let true_times: Vec<(i64, i64)> = times.iter().map(|one| (truth(*one), truth(*one))).collect();
                let told = make(&true_times);
                let superfluous = choose_deletions(&told, retention);
                for (one, true_one) in all.iter().zip(&told) {
                    prop_assert!(!deleted.contains(&one) || superfluous.contains(&true_one));
                }
            }
        }

        /// However often it is asked, and whatever was deleted before, the same ones are left.
        #[test]
        fn what_is_left_does_not_depend_on_when_it_was_asked_before(
            steps in proptest::collection::vec((60..20_000_i64, any::<bool>()), 1..120), retention in periods(),
        ) {
            let (mut now, mut often, mut once) = (1_000_000, Vec::new(), Vec::new());
            for (number, (passes, asks)) in steps.into_iter().enumerate() {
                now += passes;
                let written = now;
                let number = u32::try_from(number).unwrap();
                often.push((number, written));
                once.push((number, written));
                if asks {
                    keep_only(&mut often, now, retention);
                }
            }
            keep_only(&mut often, now, retention);
            keep_only(&mut once, now, retention);
            prop_assert_eq!(often, once);
        }
    }

    fn keep_only(all: &mut Vec<(u32, i64)>, now: i64, retention: Retention) {
        let listed: Vec<StoredSnapshot> = all
            .iter()
            .map(|(number, written)| scheduled(*number, now, *written))
            .collect();
        let deleted = choose_deletions(&listed, retention);
        let is_deleted: Vec<bool> = listed.iter().map(|one| deleted.contains(&one)).collect();
        let mut is_deleted = is_deleted.into_iter();
        all.retain(|_| is_deleted.next() == Some(false));
    }

    #[test]
    fn with_the_default_a_year_of_snapshots_is_a_week_of_hours_and_a_quarter_of_days() {
        let retention = DEFAULT;
        let mut all: Vec<(u32, i64)> = (0..365 * 96)
            .map(|number| (number, i64::from(number) * 900))
            .collect();
        keep_only(&mut all, 365 * DAY, retention);
        // Three of the last hour, 168 hours and 83 days before.
        assert_eq!(all.len(), 3 + 168 + 83);
    }
}
