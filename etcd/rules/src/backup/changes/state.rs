//! How far the changes after the last snapshot are stored, in the state of the backups: what `find_changes_problems` judges.

use super::ChainEnd;
use crate::backup::state::{BackupState, LastSnapshot, REASON_LIMIT};
use node::formatted::UnknownFields;
use node::waits::bounded_text;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// How far the changes are stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangesState {
    /// Name of the snapshot.
    pub snapshot: String,
    /// The sequence number of the last part after it; 0: there is none yet.
    pub sequence: u32,
    /// The last revision that is stored.
    pub revision: u64,
    /// The instance that stored it.
    pub instance: String,
    /// When it had stored the last part of which this says, by its clock, RFC 3339. It is said anew at least once a minute.
    pub at: String,
    /// Why no part could be stored since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ChangesFailure>,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// Why no part can be stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangesFailure {
    /// Why the last attempt failed.
    pub reason: String,
    /// The instance that tried.
    pub instance: String,
    /// Time of the first one by the clock of its instance, RFC 3339.
    pub since: String,
}

impl ChangesState {
    /// The state once an instance has stored everything up to here.
    pub fn new(end: &ChainEnd, instance: &str, now: OffsetDateTime) -> Self {
        Self {
            snapshot: end.snapshot.clone(),
            sequence: end.sequence,
            revision: end.revision,
            instance: instance.to_owned(),
            at: now.format(&Rfc3339).unwrap_or_default(),
            failure: None,
            unknown: UnknownFields::new(),
        }
    }

    /// The state while nothing is stored after this snapshot.
    fn before_first_part(last: &LastSnapshot) -> Self {
        Self {
            snapshot: last.name.clone(),
            sequence: 0,
            revision: last.revision,
            instance: last.instance.clone(),
            at: last.taken_at.clone(),
            failure: None,
            unknown: UnknownFields::new(),
        }
    }

    /// The state after an attempt of an instance failed.
    #[must_use]
    pub fn with_failure(&self, instance: &str, reason: &str, now: OffsetDateTime) -> Self {
        let since = match &self.failure {
            Some(before) => before.since.clone(),
            None => now.format(&Rfc3339).unwrap_or_default(),
        };
        Self {
            failure: Some(ChangesFailure {
                reason: bounded_text(reason, REASON_LIMIT),
                instance: instance.to_owned(),
                since,
            }),
            ..self.clone()
        }
    }
}

impl BackupState {
    /// The state with what is known of the changes.
    #[must_use]
    pub fn with_changes(&self, changes: ChangesState) -> Self {
        Self {
            changes: Some(changes),
            ..self.clone()
        }
    }

    /// The state once an instance has stored changes. `None`: another one has stored more of the same chain.
    pub fn with_stored_changes(&self, changes: &ChangesState) -> Option<Self> {
        let before = self.changes.as_ref();
        let is_behind = before.is_some_and(|before| {
            before.snapshot == changes.snapshot && before.sequence > changes.sequence
        });
        let unknown = before.map(|before| before.unknown.clone());
        (!is_behind).then(|| {
            self.with_changes(ChangesState {
                unknown: unknown.unwrap_or_default(),
                ..changes.clone()
            })
        })
    }

    /// The state after an attempt of an instance to store changes failed. `None`: it says that already, or there is no snapshot that changes
    /// could follow.
    pub fn with_failed_changes(
        &self,
        instance: &str,
        reason: &str,
        now: OffsetDateTime,
    ) -> Option<Self> {
        let before = self.changes.as_ref();
        let first = self.last.as_ref().map(ChangesState::before_first_part);
        let failed = before.cloned().or(first)?;
        let failed = failed.with_failure(instance, reason, now);
        (before != Some(&failed)).then(|| self.with_changes(failed))
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::snapshot;
    use super::*;
    use time::macros::datetime;

    #[test]
    fn a_failure_is_as_old_as_its_first_attempt_and_ends_with_the_next_part() {
        let now = datetime!(2026-11-26 15:04:05 UTC);
        let end = snapshot("cdf818194e3a8c32", 10);
        let good = ChangesState::new(&end, "i-1", now);
        let later = now + time::Duration::MINUTE;
        let failed = good.with_failure("i-1", "S3 is slow", now);
        let failed = failed.with_failure("i-2", "S3 refuses it", later);
        let expected = ChangesFailure {
            reason: "S3 refuses it".into(),
            instance: "i-2".into(),
            since: "2026-11-26T15:04:05Z".into(),
        };
        assert_eq!(failed.failure, Some(expected));
        assert_eq!((failed.at, failed.instance), (good.at, good.instance));
        assert_eq!(ChangesState::new(&end, "i-2", later).failure, None);
    }

    #[test]
    fn nobody_writes_that_less_is_stored_or_the_same_failure_again() {
        let now = datetime!(2026-11-26 15:04:05 UTC);
        let part = |snapshot_name: &str, sequence: u32| {
            let end = ChainEnd {
                snapshot: snapshot_name.into(),
                sequence,
                ..snapshot("cdf818194e3a8c32", 10)
            };
            ChangesState::new(&end, "i-1", now)
        };
        let empty = BackupState::default();
        let mut stored = empty.with_stored_changes(&part("s1", 7)).unwrap();
        let changes = stored.changes.as_mut().unwrap();
        changes.unknown.insert("later".into(), 1.into());
        for (name, sequence, is_written) in [("s1", 6, false), ("s1", 7, true), ("s2", 0, true)] {
            let next = stored.with_stored_changes(&part(name, sequence));
            assert_eq!(next.is_some(), is_written, "{name}, {sequence}");
            assert!(next.is_none_or(|next| next.to_json().contains("later")));
        }
        assert_eq!(empty.with_failed_changes("i-1", "S3 is slow", now), None);
        let snapshots = BackupState {
            last: Some(LastSnapshot {
                name: "s1".into(),
                store: "s3://b".into(),
                instance: "i-2".into(),
                cluster_id: None,
                revision: 10,
                compressed_bytes: 1,
                taken_at: "2026-11-26T15:00:00Z".into(),
                cluster_state_problem: None,
            }),
            ..empty
        };
        let later = now + time::Duration::MINUTE;
        for state in [stored, snapshots] {
            let failed = state.with_failed_changes("i-1", "S3 is slow", now).unwrap();
            assert_eq!(failed.with_failed_changes("i-1", "S3 is slow", later), None);
            let other = failed.with_failed_changes("i-1", "S3 refuses it", later);
            let since = other.unwrap().changes.unwrap().failure.unwrap().since;
            assert_eq!(since, "2026-11-26T15:04:05Z");
        }
    }

    /// A release without changes has written it, or reads it.
    #[test]
    fn a_state_without_changes_is_read_and_written_as_before() {
        let old = BackupState::default();
        let text = old.to_json();
        assert!(!text.contains("changes"), "{text}");
        let read = BackupState::parse("state", text.as_bytes()).unwrap();
        let end = snapshot("cdf818194e3a8c32", 10);
        let changes = ChangesState::new(&end, "i-1", datetime!(2026-11-26 15:04:05 UTC));
        let new = read.with_changes(changes);
        let read = BackupState::parse("state", new.to_json().as_bytes()).unwrap();
        assert_eq!(
            (read.changes.as_ref(), &read.last),
            (new.changes.as_ref(), &old.last)
        );
    }
}
