//! Decides which snapshots are deleted. Times are those of the store's clock, and never those in names.

use super::listing::StoredSnapshot;
use super::name::is_scheduled;
use std::collections::BTreeSet;
use std::time::Duration;

/// An unfinished snapshot is deleted after this time.
const UNFINISHED: Duration = Duration::from_hours(24);

const HOUR: i64 = 60 * 60;
const DAY: i64 = 24 * HOUR;

/// How long scheduled snapshots are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Everything.
    pub all: Duration,
    /// The first of each hour.
    pub hourly: Duration,
    /// The first of each day.
    pub daily: Duration,
}

/// The scheduled snapshot after this one, from a complete listing. If it is of another etcd cluster by etcd's id (their manifests say), this
/// one is the last of a cluster that was lost or given up, and is not deleted.
pub fn find_successor<'a>(
    all: &'a [StoredSnapshot],
    one: &StoredSnapshot,
) -> Option<&'a StoredSnapshot> {
    let place = |of: &StoredSnapshot| (of.written, of.name.clone());
    let complete = all.iter().filter(|other| {
        is_scheduled(&other.name) && other.has_manifest && other.has_data && other.written.is_some()
    });
    complete
        .filter(|other| place(other) > place(one))
        .min_by_key(|other| place(other))
}

/// The scheduled snapshots that are not kept any more, from a complete listing. The newest verified one is never among them, and neither
/// is one that somebody asked for, one of etcd-manager, or one whose age is not known.
pub fn choose_deletions(all: &[StoredSnapshot], retention: Retention) -> Vec<&StoredSnapshot> {
    let scheduled = all.iter().filter(|one| is_scheduled(&one.name));
    let mut timed: Vec<(&StoredSnapshot, i64, Duration)> = scheduled
        .filter_map(|one| Some((one, one.written?, one.age?)))
        .collect();
    timed.sort_by_key(|(one, written, _)| (*written, one.name.clone()));
    // Scheduled ones were verified; one that somebody brought may not be, and is not deleted anyway.
    let newest = timed.iter().map(|(one, ..)| *one);
    let newest = newest.filter(|one| one.has_manifest && one.has_data);
    // One whose age is not known may be the newest, and is kept besides.
    let newest = newest.max_by_key(|one| (one.written, &one.name));
    let (mut hours, mut days) = (BTreeSet::new(), BTreeSet::new());
    let mut deleted = Vec::new();
    for (one, written, age) in timed {
        if !one.has_manifest {
            let is_unfinished = one.has_data && !one.has_meta;
            if is_unfinished && age >= UNFINISHED {
                deleted.push(one);
            }
            continue;
        }
        if !one.has_data {
            // It cannot be restored, and takes the place of none that can.
            continue;
        }
        let first_of_hour = hours.insert(written.div_euclid(HOUR));
        let first_of_day = days.insert(written.div_euclid(DAY));
        let is_kept = age < retention.all
            || first_of_hour && age < retention.hourly
            || first_of_day && age < retention.daily
            || newest.is_some_and(|newest| newest.name == one.name);
        if !is_kept {
            deleted.push(one);
        }
    }
    deleted
}

#[cfg(test)]
mod tests {
    use super::super::name::scheduled_name;
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
        }
    }

    fn scheduled(number: u32, now: i64, written: i64) -> StoredSnapshot {
        // Names lie: their times are of any clock.
        let time =
            OffsetDateTime::UNIX_EPOCH + time::Duration::days(i64::from(number * 7919 % 9000));
        snapshot(&scheduled_name(time, number), now, written)
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
        assert_eq!(find_successor(&all, &all[1]), Some(&all[4]));
        assert_eq!(find_successor(&all, &all[4]), Some(&all[0]));
        assert_eq!(find_successor(&all, &all[0]), None);
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
        let retention = Retention {
            all: Duration::from_hours(1),
            hourly: Duration::from_hours(7 * 24),
            daily: Duration::from_hours(90 * 24),
        };
        let mut all: Vec<(u32, i64)> = (0..365 * 96)
            .map(|number| (number, i64::from(number) * 900))
            .collect();
        keep_only(&mut all, 365 * DAY, retention);
        // Three of the last hour, 167 hours and 83 days before.
        assert_eq!(all.len(), 3 + 167 + 83);
    }
}
