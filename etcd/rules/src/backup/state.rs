//! The state of an etcd cluster's backups, an object in the state store that is changed only as it was read: who takes a snapshot, and
//! what became of the last ones. It is no condition of anything else that protokube does.

use super::changes::ChangesState;
use node::formatted::{Error, UnknownFields, parse_formatted, to_pretty_json};
use node::waits::bounded_text;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Format of [`BackupState`].
const STATE_FORMAT: u32 = 1;

/// Time between two drills.
const DRILL_INTERVAL: time::Duration = time::Duration::DAY;

/// The first wait after a drill that came to no result. It doubles with each.
const DRILL_RETRY: time::Duration = time::Duration::MINUTE;
const LONGEST_DRILL_RETRY: time::Duration = time::Duration::minutes(15);

/// Limit of a reason, characters.
pub(super) const REASON_LIMIT: usize = 500;

/// Limit of the object, bytes.
pub const BACKUP_STATE_LIMIT: usize = 16 * 1024;

/// The state of an etcd cluster's backups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupState {
    /// Always 1.
    pub format: u32,
    /// Number of the last scheduled snapshot.
    #[serde(default)]
    pub sequence: u32,
    /// Who takes a scheduled snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taking: Option<BackupClaim>,
    /// The last scheduled snapshot that was verified and stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastSnapshot>,
    /// Why there is none since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<BackupFailure>,
    /// The last drill: a stored snapshot was downloaded, and a scratch etcd has read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drill: Option<BackupDrill>,
    /// Why drills since then came to no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished_drill: Option<UnfinishedDrill>,
    /// How far the changes after the last snapshot are stored; missing: nobody has stored any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangesState>,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// Who takes a scheduled snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupClaim {
    /// The instance, `i-...`.
    pub instance: String,
    /// Name of the snapshot.
    pub name: String,
    /// Its age when something else in the state was changed last, seconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub age_seconds: u64,
}

/// The last scheduled snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastSnapshot {
    /// Name of the snapshot.
    pub name: String,
    /// Address of the backup store that has it.
    pub store: String,
    /// The instance that took it.
    pub instance: String,
    /// etcd's id of the cluster, hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// Revision of the data.
    pub revision: u64,
    /// Bytes of the compressed file.
    pub compressed_bytes: u64,
    /// Time by the clock of the instance, RFC 3339.
    pub taken_at: String,
    /// Why it has no sealed keys of the cluster, although the spec names somebody who may read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_state_problem: Option<String>,
}

/// Why snapshots fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupFailure {
    /// Why the last one failed.
    pub reason: String,
    /// The instance that tried.
    pub instance: String,
    /// Time by its clock, RFC 3339.
    pub at: String,
    /// How many have failed since the last that did not.
    pub count: u32,
    /// As that of a claim.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub age_seconds: u64,
}

/// A drill of a restore that changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupDrill {
    /// Name of the snapshot.
    pub name: String,
    /// The instance that read it.
    pub instance: String,
    /// Time by its clock, RFC 3339.
    pub at: String,
    /// How long it took.
    pub seconds: u64,
    /// What was found.
    pub found: String,
    /// True if the snapshot cannot be used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

/// Drills that came to no result: nothing was found out about the snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnfinishedDrill {
    /// Why the last one did not.
    pub reason: String,
    /// The instance that tried.
    pub instance: String,
    /// Time of the first by the clock of its instance, RFC 3339.
    pub since: String,
    /// Time of the last.
    pub at: String,
    /// How many there were.
    pub count: u32,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Default for BackupState {
    fn default() -> Self {
        Self {
            format: STATE_FORMAT,
            sequence: 0,
            taking: None,
            last: None,
            failure: None,
            drill: None,
            unfinished_drill: None,
            changes: None,
            unknown: UnknownFields::new(),
        }
    }
}

/// Key of the state of an etcd cluster's backups, relative to the cluster's base in the state store.
pub fn backup_state_key(etcd: &str) -> String {
    format!("etcd/{etcd}/backups.json")
}

impl BackupState {
    /// Parses the object; `what` names it in errors.
    pub fn parse(what: &str, bytes: &[u8]) -> Result<Self, Error> {
        parse_formatted(what, bytes)
    }

    /// True if no drill came to a result in the last day, and the last attempt is so long ago that it is repeated. Times are those of the
    /// clock of whoever asks: a wrong one makes more or fewer drills.
    pub fn is_drill_due(&self, now: OffsetDateTime) -> bool {
        let is_past = |at: &str, pause: time::Duration| {
            let at = OffsetDateTime::parse(at, &Rfc3339).ok();
            at.is_none_or(|at| (now - at).abs() >= pause)
        };
        let last = self.drill.as_ref();
        let attempt = self.unfinished_drill.as_ref();
        last.is_none_or(|last| is_past(&last.at, DRILL_INTERVAL))
            && attempt.is_none_or(|attempt| {
                let doubled = DRILL_RETRY * 2_i32.pow(attempt.count.saturating_sub(1).min(10));
                is_past(&attempt.at, doubled.min(LONGEST_DRILL_RETRY))
            })
    }

    /// The state with the result of a drill.
    #[must_use]
    pub fn with_drill(&self, drill: BackupDrill) -> Self {
        Self {
            drill: Some(drill),
            unfinished_drill: None,
            ..self.clone()
        }
    }

    /// The state after a drill that came to no result on this instance.
    #[must_use]
    pub fn with_unfinished_drill(&self, instance: &str, reason: &str, now: OffsetDateTime) -> Self {
        let at = now.format(&Rfc3339).unwrap_or_default();
        let before = self.unfinished_drill.as_ref();
        let attempt = UnfinishedDrill {
            reason: bounded_text(reason, REASON_LIMIT),
            instance: instance.to_owned(),
            since: before.map_or_else(|| at.clone(), |before| before.since.clone()),
            at,
            count: before.map_or(0, |before| before.count).saturating_add(1),
        };
        Self {
            unfinished_drill: Some(attempt),
            ..self.clone()
        }
    }

    /// The state, to be written for something else than its claim or its failure, so much later: they do not become younger.
    #[must_use]
    pub fn aged(&self, age: Duration) -> Self {
        let mut aged = self.clone();
        let ages = [
            aged.taking.as_mut().map(|claim| &mut claim.age_seconds),
            aged.failure
                .as_mut()
                .map(|failure| &mut failure.age_seconds),
        ];
        for seconds in ages.into_iter().flatten() {
            *seconds = seconds.saturating_add(age.as_secs());
        }
        aged
    }

    /// The text that is stored.
    pub fn to_json(&self) -> String {
        to_pretty_json(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn a_drill_without_a_result_is_repeated_soon_and_one_with_a_result_after_a_day() {
        let begin = datetime!(2026-11-25 12:00 UTC);
        let mut state = BackupState::default();
        assert!(state.is_drill_due(begin));
        let (mut now, mut waits) = (begin, Vec::new());
        for _ in 0..6 {
            state = state.with_unfinished_drill("i-1", "etcdctl says no Count", now);
            let due = |minutes: &i64| state.is_drill_due(now + time::Duration::minutes(*minutes));
            let wait = (0..60).find(due).unwrap();
            waits.push(wait);
            now += time::Duration::minutes(wait);
        }
        assert_eq!(waits, [1, 2, 4, 8, 15, 15]);
        let attempt = state.unfinished_drill.clone().unwrap();
        assert_eq!(
            (attempt.since.as_str(), attempt.count),
            ("2026-11-25T12:00:00Z", 6)
        );
        let drill = BackupDrill {
            name: "n".to_owned(),
            instance: "i-1".to_owned(),
            at: now.format(&Rfc3339).unwrap(),
            seconds: 1,
            found: String::new(),
            failed: false,
        };
        let state = state.with_drill(drill);
        assert_eq!(state.unfinished_drill, None);
        for (hours, is_due) in [(23, false), (24, true), (-25, true)] {
            assert_eq!(
                state.is_drill_due(now + time::Duration::hours(hours)),
                is_due,
                "{hours}"
            );
        }
    }
}
