//! The state of an etcd cluster's backups, an object in the state store that is changed only as it was read: who takes a snapshot, and
//! what became of the last ones. It is no condition of anything else that protokube does.

use crate::etcd::{Error, UnknownFields, parse_formatted, to_pretty_json};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Format of [`BackupState`].
const STATE_FORMAT: u32 = 1;

/// Time between two drills.
const DRILL_INTERVAL: time::Duration = time::Duration::DAY;

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

impl Default for BackupState {
    fn default() -> Self {
        Self {
            format: STATE_FORMAT,
            sequence: 0,
            taking: None,
            last: None,
            failure: None,
            drill: None,
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

    /// True if no drill was made in the last day, by the clock of whoever asks: a wrong one makes more or fewer drills.
    pub fn is_drill_due(&self, now: OffsetDateTime) -> bool {
        let last = self.drill.as_ref();
        let last = last.and_then(|drill| OffsetDateTime::parse(&drill.at, &Rfc3339).ok());
        last.is_none_or(|last| (now - last).abs() >= DRILL_INTERVAL)
    }

    /// The text that is stored.
    pub fn to_json(&self) -> String {
        to_pretty_json(self)
    }
}
