//! What is wrong with the changes that are stored between snapshots: how old the newest moment is that a restore can reach, and why it is no
//! newer. A listing of the backup store says it by the store's clock.

use super::changes::{
    ChainGap, ChangesState, ChosenPoint, RestorePoint, RestoreTime, choose_restore_point,
};
use super::found::FoundSnapshot;
use super::problems::StoredBackups;
use node::duration::duration_text;
use node::etcd_problem::EtcdProblem;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The newest moment that can be restored may be so old, unless parts are closed more rarely than each minute.
const LATE: Duration = Duration::from_mins(2);

/// What a listing of a backup store shows of the newest moment that can be restored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewestRestorable {
    /// `None`: there is no verified snapshot of the etcd cluster.
    pub point: Option<RestorePoint>,
    /// What keeps it from being newer.
    pub gaps: Vec<ChainGap>,
    /// The newest chain, if it is of another etcd cluster and was written after that moment.
    pub foreign: Option<ForeignChain>,
}

/// Parts of another etcd cluster: of one that was given up, or that uses the same store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignChain {
    /// Name of the snapshot before them.
    pub snapshot: String,
    /// etcd's id of that cluster, hex.
    pub cluster_id: String,
    /// How long ago the last one was written, by the store's clock.
    pub age: Option<Duration>,
}

/// Finds the newest moment that can be restored, in a complete listing. `cluster_id`: etcd's id of the cluster as it is now, hex.
pub fn newest_restorable(all: &[FoundSnapshot], cluster_id: &str) -> NewestRestorable {
    let ChosenPoint { point, gaps, .. } =
        choose_restore_point(all, cluster_id, RestoreTime::Latest);
    let own = point.as_ref().and_then(|point| point.moment);
    let foreign = all.iter().filter_map(|one| {
        let other = one.manifest.as_ref()?.cluster_id.as_ref()?;
        let parts = one.stored.usable_parts().iter();
        let written = parts.clone().filter_map(|part| part.written).max();
        let is_newer = other != cluster_id && written > own;
        is_newer.then(|| {
            let chain = ForeignChain {
                snapshot: one.name().to_owned(),
                cluster_id: other.clone(),
                age: parts.filter_map(|part| part.age).min(),
            };
            (written, chain)
        })
    });
    let newest = foreign.max_by_key(|(written, _)| *written);
    NewestRestorable {
        foreign: newest.map(|(_, chain)| chain),
        point,
        gaps,
    }
}

/// Etcd clusters whose changes are to be stored, and whose newest moment is too old, cannot be told, or is behind a gap. Without a state of
/// the changes nothing is said: no release that stores them has run yet.
pub fn find_changes_problems(backups: &StoredBackups, now: OffsetDateTime) -> Vec<EtcdProblem> {
    let settings = backups.settings.iter().flat_map(|settings| &settings.etcd);
    let problems = settings.filter_map(|(etcd, settings)| {
        let interval = settings.changes_interval()?;
        let state = backups.states.get(etcd)?.changes.as_ref()?;
        let view = View {
            state,
            seen: backups.restorable.get(etcd),
            late: LATE.max(interval.saturating_mul(2)),
            interval,
            now,
        };
        Some(view.describe(etcd))
    });
    problems.flatten().collect()
}

/// What is known of one etcd cluster.
struct View<'a> {
    state: &'a ChangesState,
    /// `None`: nobody has listed the store.
    seen: Option<&'a NewestRestorable>,
    late: Duration,
    interval: Duration,
    now: OffsetDateTime,
}

impl View<'_> {
    fn describe(&self, etcd: &str) -> Vec<EtcdProblem> {
        let gaps = self.seen.iter().flat_map(|seen| &seen.gaps);
        let gaps = gaps.map(ChainGap::to_string);
        let messages = self.late_moment().into_iter().chain(self.foreign_chain());
        let next = format!(
            "correct the reason; the next scheduled snapshot begins a new chain, and none that somebody asks for does, but it saves what is \
             there now: kctl etcd snapshot save --etcd {etcd}; docs/operations/backups.md"
        );
        let problem = |message| EtcdProblem::of_cluster(etcd, message, next.clone());
        messages.chain(gaps).map(problem).collect()
    }

    /// The newest moment, if it is too old or there is none.
    fn late_moment(&self) -> Option<String> {
        let message = match (self.has_none(), self.age()) {
            (true, age) if age.is_none_or(|age| age > self.late) => {
                "no moment of it can be restored".to_owned()
            }
            (false, Some(age)) if age > self.late => {
                format!("its newest restorable moment is {} old", text_of(age))
            }
            _ => return None,
        };
        let interval = text_of(self.interval);
        Some(format!(
            "{message}, and changes are stored every {interval}: {}",
            self.reason()
        ))
    }

    /// True if the store has nothing of this etcd cluster: of a new one, or one that was restored, until its first snapshot.
    fn has_none(&self) -> bool {
        self.seen.is_some_and(|seen| seen.point.is_none())
    }

    /// How old the newest moment is by the store's clock, or the last part by what the state says. `None`: nobody knows.
    fn age(&self) -> Option<Duration> {
        if let Some(point) = self.seen.and_then(|seen| seen.point.as_ref()) {
            return point.age;
        }
        let at = OffsetDateTime::parse(&self.state.at, &Rfc3339).ok()?;
        // A time of the future is of another clock.
        Some(Duration::try_from(self.now - at).unwrap_or_default())
    }

    /// Why it is no newer, by the state.
    fn reason(&self) -> String {
        let ChangesState {
            snapshot,
            sequence,
            instance,
            at,
            ..
        } = self.state;
        match &self.state.failure {
            Some(failure) => format!(
                "none could be stored since {}, the last attempt was on {}: {}",
                failure.since, failure.instance, failure.reason
            ),
            None => format!(
                "nobody says why; the last that is known is part {sequence} after {snapshot}, which {instance} stored at {at}"
            ),
        }
    }

    /// A chain of another etcd cluster that is newer. Until the first snapshot of this one that is in order.
    fn foreign_chain(&self) -> Option<String> {
        let foreign = self.seen?.foreign.as_ref()?;
        let is_awaited = self.has_none() && self.late_moment().is_none();
        (!is_awaited).then(|| {
            format!(
                "the newest chain of changes in its backup store, after {}, is of another etcd cluster, {}, and newer than all of this one",
                foreign.snapshot, foreign.cluster_id
            )
        })
    }
}

fn text_of(time: Duration) -> String {
    duration_text(i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::super::changes::ChangesFailure;
    use super::super::listing::group_snapshots;
    use super::super::manifest::SnapshotManifest;
    use super::super::name::{changes_key, data_key, manifest_key};
    use super::super::state::BackupState;
    use super::*;
    use node::backup::{BackupSettings, EtcdBackupSettings};
    use node::formatted::UnknownFields;
    use time::macros::datetime;

    const OWN: &str = "cdf818194e3a8c32";
    const OTHER: &str = "0123456789abcdef";
    const NOW: OffsetDateTime = datetime!(2026-11-26 15:00 UTC);

    /// What is stored if the last part is so old by its instance's clock.
    fn backups(changes_seconds: Option<u64>, at: OffsetDateTime) -> StoredBackups {
        let settings = EtcdBackupSettings {
            store: "s3://b".into(),
            interval_seconds: 900,
            hourly_retention_seconds: 0,
            daily_retention_seconds: 0,
            recipients: Vec::new(),
            changes_seconds,
            unknown: UnknownFields::new(),
        };
        let changes = ChangesState {
            snapshot: "s1".into(),
            sequence: 7,
            revision: 20,
            instance: "i-1".into(),
            at: at.format(&Rfc3339).unwrap(),
            failure: None,
            unknown: UnknownFields::new(),
        };
        StoredBackups {
            settings: Some(BackupSettings::new([("main".into(), settings)].into())),
            states: [("main".into(), BackupState::default().with_changes(changes))].into(),
            ..StoredBackups::default()
        }
    }

    fn minutes_ago(minutes: i64) -> OffsetDateTime {
        NOW - time::Duration::minutes(minutes)
    }

    fn messages(backups: &StoredBackups) -> Vec<String> {
        let found = find_changes_problems(backups, NOW).into_iter();
        found.map(|one| one.message).collect()
    }

    /// Name of a snapshot, id of its etcd cluster, revision, and how many minutes ago it and its parts were written.
    type Shown<'a> = (&'a str, &'a str, u64, i64, &'a [(u32, i64)]);

    fn listed(all: &[Shown<'_>]) -> Vec<FoundSnapshot> {
        let one = |&(name, id, revision, written, parts): &Shown<'_>| {
            let object = |key: String, minutes: i64| {
                let age = Duration::from_secs(u64::try_from(minutes * 60).unwrap());
                (
                    key,
                    3,
                    Some(minutes_ago(minutes).unix_timestamp()),
                    Some(age),
                )
            };
            let own = [data_key(name), manifest_key(name)].map(|key| object(key, written));
            let parts = parts
                .iter()
                .map(|(part, minutes)| object(changes_key(name, *part), *minutes));
            let objects: Vec<_> = own.into_iter().chain(parts).collect();
            let listed = objects
                .iter()
                .map(|(key, bytes, at, age)| (key.as_str(), *bytes, *at, *age));
            let text = format!(
                r#"{{"format":1,"name":"{name}","cluster":"c","etcd":"main","reason":"schedule","takenAt":"","clusterId":"{id}","bytes":1,
                "sha256":"","compressedBytes":1,"compressedSha256":"","kctlVersion":"0.1.0",
                "verified":{{"at":"","revision":{revision},"compacted":0,"hash":0,"keys":0,"seconds":0}}}}"#
            );
            FoundSnapshot {
                stored: group_snapshots(listed).pop().unwrap(),
                manifest: Some(SnapshotManifest::parse("manifest", text.as_bytes()).unwrap()),
                problem: None,
            }
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn nothing_is_said_unless_changes_are_on_and_somebody_has_stored_some() {
        let mut backups = backups(Some(5), minutes_ago(60));
        assert_eq!(messages(&backups).len(), 1);
        backups.states.get_mut("main").unwrap().changes = None;
        assert_eq!(find_changes_problems(&backups, NOW), []);
        for off in [None, Some(0)] {
            let backups = self::backups(off, minutes_ago(60));
            assert_eq!(find_changes_problems(&backups, NOW), []);
        }
        assert_eq!(find_changes_problems(&StoredBackups::default(), NOW), []);
    }

    #[test]
    fn a_moment_that_is_too_old_is_a_problem_with_its_reason() {
        // Parts of each hour are no problem while they are an hour old.
        for (seconds, minutes, is_problem) in [
            (5, 2, false),
            (5, 3, true),
            (5, -60, false),
            (3600, 119, false),
            (3600, 121, true),
        ] {
            let backups = backups(Some(seconds), minutes_ago(minutes));
            assert_eq!(
                messages(&backups).len(),
                usize::from(is_problem),
                "{seconds}, {minutes}"
            );
        }
        let mut backups = backups(Some(5), minutes_ago(12));
        let late = "its newest restorable moment is 12m00s old, and changes are stored every 5s: ";
        let last = "nobody says why; the last that is known is part 7 after s1, which i-1 stored at 2026-11-26T14:48:00Z";
        assert_eq!(messages(&backups), [format!("{late}{last}")]);
        let state = backups.states.get_mut("main").unwrap();
        state.changes.as_mut().unwrap().failure = Some(ChangesFailure {
            reason: "S3 refuses it".into(),
            instance: "i-2".into(),
            since: "2026-11-26T14:49:00Z".into(),
        });
        let why = "none could be stored since 2026-11-26T14:49:00Z, the last attempt was on i-2: S3 refuses it";
        assert_eq!(messages(&backups), [format!("{late}{why}")]);
    }

    /// The clocks of the instance and of whoever asks may be wrong: a listing knows better.
    #[test]
    fn a_listing_says_how_old_the_newest_moment_is() {
        for (parts, at, is_problem) in [
            (vec![(1, 1)], minutes_ago(60), false),
            (vec![(1, 3)], NOW, true),
            (vec![], NOW, true),
            (vec![(1, 4), (2, 1)], minutes_ago(60), false),
        ] {
            let mut backups = backups(Some(5), at);
            let all = listed(&[("s1", OWN, 10, 5, &parts[..])]);
            let seen = newest_restorable(&all, OWN);
            backups.restorable.insert("main".into(), seen);
            assert_eq!(
                messages(&backups).len(),
                usize::from(is_problem),
                "{parts:?}"
            );
        }
    }

    #[test]
    fn a_gap_and_a_chain_of_another_etcd_cluster_are_problems() {
        let own_and_gap = listed(&[("s1", OWN, 10, 5, &[(1, 1), (3, 0)])]);
        let other_is_older = listed(&[
            ("s0", OTHER, 90, 9, &[(1, 8)]),
            ("s1", OWN, 10, 5, &[(1, 1)]),
        ]);
        let other_is_newer = listed(&[
            ("s0", OTHER, 90, 9, &[(1, 0)]),
            ("s1", OWN, 10, 5, &[(1, 1)]),
        ]);
        let only_other = listed(&[("s0", OTHER, 90, 9, &[(1, 8)])]);
        let foreign =
            "the newest chain of changes in its backup store, after s0, is of another etcd cluster";
        for (all, at, expected) in [
            (
                &own_and_gap,
                NOW,
                vec!["part 2 of the changes after s1 is missing"],
            ),
            (&other_is_older, NOW, vec![]),
            (&other_is_newer, NOW, vec![foreign]),
            // It was restored just now, and its first snapshot is being taken.
            (&only_other, minutes_ago(1), vec![]),
            (
                &only_other,
                minutes_ago(8),
                vec!["no moment of it can be restored", foreign],
            ),
        ] {
            let mut backups = backups(Some(5), at);
            backups
                .restorable
                .insert("main".into(), newest_restorable(all, OWN));
            let found = messages(&backups);
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.starts_with(expected), "{found}");
            }
        }
    }
}
