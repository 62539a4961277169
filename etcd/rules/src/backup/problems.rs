//! What is wrong with the backups of the etcd clusters, by what protokube stores about them. `kctl validate` and `kctl etcd status` show it:
//! a backup that silently stopped is found on the day of the restore.

use super::changes_problems::{NewestRestorable, find_changes_problems};
use crate::backup::BackupState;
use node::backup::BackupSettings;
use node::duration::duration_text;
use node::etcd_problem::EtcdProblem;
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Seconds after which another instance goes on with a snapshot whose instance died. A snapshot is late after a second interval, or after this
/// time, if that is longer and none has failed.
const LEEWAY: i64 = 15 * 60;

/// Seconds for which drills may come to no result: an instance may be busy, or S3 away, for some hours.
const DRILL_PATIENCE: i64 = 6 * 60 * 60;

/// A snapshot that has failed less often, before there was one, is just tried again.
const FIRST_ATTEMPTS: u32 = 3;

/// What is stored about the backups of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredBackups {
    /// The settings; `None`: `kctl update` has not written them yet.
    pub settings: Option<BackupSettings>,
    /// Age of the settings, seconds, by the state store's clock.
    pub settings_age: Option<i64>,
    /// By etcd cluster.
    pub states: BTreeMap<String, BackupState>,
    /// What a listing of its backup store shows, by etcd cluster; missing: nobody has listed it.
    pub restorable: BTreeMap<String, NewestRestorable>,
}

/// Etcd clusters without a snapshot that is young enough, whose last drill failed, or whose changes are not stored as they should be.
pub fn find_backup_problems(backups: &StoredBackups, now: OffsetDateTime) -> Vec<EtcdProblem> {
    let mut problems = find_late_backups(backups, now);
    let drills = backups.states.iter().filter_map(|(etcd, state)| {
        let drill = state.drill.as_ref().filter(|drill| drill.failed)?;
        let message = format!(
            "the drill with its snapshot {} on {} failed: {}",
            drill.name, drill.instance, drill.found
        );
        let next = format!(
            "correct the reason and drill again: kctl etcd drill --etcd {etcd}; if the snapshot is damaged, see others: kctl etcd snapshot list --etcd {etcd}"
        );
        Some(EtcdProblem::of_cluster(etcd, message, next))
    });
    problems.extend(drills);
    problems.extend(find_unfinished_drills(backups, now));
    problems.extend(find_unsealed(backups));
    problems.extend(find_changes_problems(backups, now));
    problems
}

/// Etcd clusters whose drills have come to no result for long. Nothing is known of the snapshot then, and it is tried again.
fn find_unfinished_drills(
    backups: &StoredBackups,
    now: OffsetDateTime,
) -> impl Iterator<Item = EtcdProblem> {
    backups.states.iter().filter_map(move |(etcd, state)| {
        let attempt = state.unfinished_drill.as_ref()?;
        let since = OffsetDateTime::parse(&attempt.since, &Rfc3339).ok()?;
        let age = (now - since).whole_seconds();
        if age < DRILL_PATIENCE {
            return None;
        }
        let message = format!(
            "no drill with its snapshots has come to a result for {}: {} were tried, the last on {}: {}",
            duration_text(age),
            attempt.count,
            attempt.instance,
            attempt.reason
        );
        let next = format!(
            "correct the reason; protokube tries again by itself, and at once with: kctl etcd drill --etcd {etcd}"
        );
        Some(EtcdProblem::of_cluster(etcd, message, next))
    })
}

/// Etcd clusters whose last snapshot lacks the keys of the cluster.
fn find_unsealed(backups: &StoredBackups) -> impl Iterator<Item = EtcdProblem> {
    backups.states.iter().filter_map(|(etcd, state)| {
        let why = state.last.as_ref()?.cluster_state_problem.as_ref()?;
        Some(EtcdProblem::of_cluster(
            etcd,
            format!("its last snapshot has no private keys of the cluster: {why}"),
            "correct the reason; docs/operations/backups.md".to_owned(),
        ))
    })
}

fn find_late_backups(backups: &StoredBackups, now: OffsetDateTime) -> Vec<EtcdProblem> {
    let settings = backups.settings.iter().flat_map(|settings| &settings.etcd);
    let problems = settings.filter_map(|(etcd, settings)| {
        let interval = i64::try_from(settings.interval_seconds).unwrap_or(i64::MAX);
        let state = backups.states.get(etcd);
        let failures = state.and_then(|state| state.failure.as_ref());
        let fails = failures.is_some();
        let leeway = if fails { 0 } else { LEEWAY };
        let late = interval.saturating_add(interval.max(leeway));
        let last = state.and_then(|state| state.last.as_ref());
        let taken = last.and_then(|last| OffsetDateTime::parse(&last.taken_at, &Rfc3339).ok());
        let message = match taken.map(|taken| (now - taken).whole_seconds()) {
            Some(age) if age > late => {
                format!("its last snapshot is {} old", duration_text(age))
            }
            Some(_) => return None,
            None => {
                let waited = backups.settings_age.is_some_and(|age| age > late);
                let tried = failures.is_some_and(|failure| failure.count >= FIRST_ATTEMPTS);
                if !tried && !waited {
                    return None;
                }
                "it has no snapshot".to_owned()
            }
        };
        let failure = state.and_then(|state| state.failure.as_ref());
        let why = failure.map(|failure| {
            format!(
                ": {} have failed since, the last on {}: {}",
                failure.count, failure.instance, failure.reason
            )
        });
        let interval = duration_text(interval);
        let message = format!(
            "{message}, and one is taken every {interval}{}",
            why.unwrap_or_default()
        );
        let next = format!(
            "take one now, which says what fails: kctl etcd snapshot save --etcd {etcd}; docs/operations/backups.md"
        );
        Some(EtcdProblem::of_cluster(etcd, message, next))
    });
    problems.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::{BackupDrill, BackupFailure, LastSnapshot};
    use node::backup::EtcdBackupSettings;
    use time::macros::datetime;

    const NOW: OffsetDateTime = datetime!(2026-11-25 12:00 UTC);

    fn backups(last: Option<&str>, fails: bool, settings_age: i64) -> StoredBackups {
        let settings = EtcdBackupSettings {
            store: "s3://b".into(),
            interval_seconds: 900,
            hourly_retention_seconds: 0,
            daily_retention_seconds: 0,
            recipients: Vec::new(),
            changes_seconds: None,
            unknown: node::formatted::UnknownFields::new(),
        };
        let state = BackupState {
            last: last.map(|at| LastSnapshot {
                name: "n".into(),
                store: "s3://b".into(),
                instance: "i-1".into(),
                cluster_id: None,
                revision: 1,
                compressed_bytes: 1,
                taken_at: at.into(),
                cluster_state_problem: None,
            }),
            failure: fails.then(|| BackupFailure {
                reason: "the root disk is full".into(),
                instance: "i-1".into(),
                at: String::new(),
                count: 3,
                age_seconds: 0,
            }),
            ..BackupState::default()
        };
        StoredBackups {
            settings: Some(BackupSettings::new([("main".into(), settings)].into())),
            settings_age: Some(settings_age),
            states: [("main".into(), state)].into(),
            ..StoredBackups::default()
        }
    }

    #[test]
    fn a_drill_that_failed_is_a_problem_until_the_next() {
        let mut backups = backups(Some("2026-11-25T11:50:00Z"), false, 0);
        for (failed, count) in [(true, 1), (false, 0)] {
            backups.states.get_mut("main").unwrap().drill = Some(BackupDrill {
                name: "n".into(),
                instance: "i-1".into(),
                at: "2026-11-25T11:50:00Z".into(),
                seconds: 9,
                found: "it is damaged".into(),
                failed,
            });
            let found = find_backup_problems(&backups, NOW);
            assert_eq!(found.len(), count);
            assert!(
                found
                    .iter()
                    .all(|one| one.message.contains("it is damaged"))
            );
        }
    }

    /// On a busy machine the first snapshots and drills of a cluster may fail: they are tried again.
    #[test]
    fn what_is_tried_again_is_a_problem_only_once_it_has_failed_for_long() {
        let mut backups = backups(None, true, 60);
        for (count, problems) in [(1, 0), (2, 0), (3, 1)] {
            let state = backups.states.get_mut("main").unwrap();
            state.failure.as_mut().unwrap().count = count;
            assert_eq!(find_backup_problems(&backups, NOW).len(), problems);
        }
        let mut backups = self::backups(Some("2026-11-25T11:50:00Z"), false, 0);
        for (hours, problems) in [(0, 0), (5, 0), (6, 1), (100, 1)] {
            let since = NOW - time::Duration::hours(hours);
            let state = BackupState::default();
            let state = state.with_unfinished_drill("i-1", "etcdctl says no Count", since);
            let state = state.with_unfinished_drill("i-2", "S3 is slow", NOW);
            let last = backups.states["main"].last.clone();
            backups
                .states
                .insert("main".into(), BackupState { last, ..state });
            let found = find_backup_problems(&backups, NOW);
            assert_eq!(found.len(), problems, "{hours}: {found:?}");
            for one in found {
                assert!(
                    one.message
                        .contains("2 were tried, the last on i-2: S3 is slow")
                );
            }
        }
    }

    #[test]
    fn a_late_snapshot_and_a_missing_one_are_problems() {
        for (last, fails, settings_age, says) in [
            (Some("2026-11-25T11:50:00Z"), false, 0, None),
            (Some("2026-11-25T11:50:00Z"), true, 0, None),
            (Some("2026-11-25T11:30:30Z"), false, 0, None),
            (
                Some("2026-11-25T11:29:00Z"),
                false,
                0,
                Some("its last snapshot is 31m00s old"),
            ),
            (
                Some("2026-11-25T11:29:00Z"),
                true,
                0,
                Some("the last on i-1: the root disk is full"),
            ),
            // A new cluster.
            (None, false, 600, None),
            (None, true, 600, Some("it has no snapshot")),
            (None, false, 5000, Some("it has no snapshot")),
        ] {
            let found = find_backup_problems(&backups(last, fails, settings_age), NOW);
            let found: Vec<&str> = found.iter().map(|one| one.message.as_str()).collect();
            assert_eq!(
                found.len(),
                usize::from(says.is_some()),
                "{last:?}: {found:?}"
            );
            if let (Some(says), Some(found)) = (says, found.first()) {
                assert!(found.contains(says), "{found}");
            }
        }
        assert_eq!(find_backup_problems(&StoredBackups::default(), NOW), []);
    }
}
