//! Settings of the backups, an object in the state store that `kctl update` writes from the spec and protokube follows while it runs: a
//! change replaces no instance.

use crate::formatted::{Error, UnknownFields, parse_formatted, to_pretty_json};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Key of the object, relative to the cluster's base in the state store.
pub const BACKUP_SETTINGS_KEY: &str = "etcd-backups.json";

/// Limit of the object, bytes.
pub const BACKUP_SETTINGS_LIMIT: usize = 16 * 1024;

/// Format of [`BackupSettings`].
const SETTINGS_FORMAT: u32 = 1;

/// Seconds that may lie between two snapshots: up to a year.
const INTERVALS: RangeInclusive<u64> = 1..=365 * 24 * 60 * 60;

/// Seconds after which a part of the changes is closed and stored, unless the spec says something else.
pub const CHANGES_SECONDS: u64 = 5;

/// Seconds that a spec may say instead, up to an hour; with 0, changes are not stored. What is in no part is lost with the members.
pub const CHANGES_LIMITS: RangeInclusive<u64> = 0..=60 * 60;

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The object is damaged, or of another release.
    #[error(transparent)]
    Object(#[from] Error),
    /// No spec has such an interval.
    #[error(
        "{what} says that etcd {etcd} is backed up every {seconds} seconds, and not between each second and once a year: `kctl update cluster --yes` writes it again"
    )]
    Interval {
        /// Name of the object.
        what: String,
        /// Name of the etcd cluster.
        etcd: String,
        /// What it says.
        seconds: u64,
    },
    /// No spec stores changes so rarely.
    #[error(
        "{what} says that changes of etcd {etcd} are stored every {seconds} seconds, and not at least once an hour: `kctl update cluster --yes` writes it again"
    )]
    Changes {
        /// Name of the object.
        what: String,
        /// Name of the etcd cluster.
        etcd: String,
        /// What it says.
        seconds: u64,
    },
}

/// Settings of the backups of all etcd clusters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupSettings {
    format: u32,
    /// By name of the etcd cluster.
    pub etcd: BTreeMap<String, EtcdBackupSettings>,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// Settings of the backups of an etcd cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdBackupSettings {
    /// Address of the backup store, `s3://BUCKET/PREFIX`.
    pub store: String,
    /// Seconds between two snapshots.
    pub interval_seconds: u64,
    /// Seconds for which one of each hour is kept.
    pub hourly_retention_seconds: u64,
    /// Seconds for which one of each day is kept.
    pub daily_retention_seconds: u64,
    /// Public keys of age, `age1...`: the spec and the private keys of the cluster are stored sealed for them. Empty: they are not stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<String>,
    /// Seconds after which a part of the changes since the last snapshot is closed and stored. Missing or 0: changes are not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes_seconds: Option<u64>,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// How long scheduled snapshots are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Everything.
    pub all: Duration,
    /// The first of each hour, from the end of the hour on.
    pub hourly: Duration,
    /// The first of each day, from the end of the day on.
    pub daily: Duration,
}

impl BackupSettings {
    /// Settings of these etcd clusters.
    pub fn new(etcd: BTreeMap<String, EtcdBackupSettings>) -> Self {
        Self {
            format: SETTINGS_FORMAT,
            etcd,
            unknown: UnknownFields::new(),
        }
    }

    /// Parses the object; `what` names it in errors. Settings that no spec allows are refused: somebody else wrote them.
    pub fn parse(what: &str, bytes: &[u8]) -> Result<Self, SettingsError> {
        let settings: Self = parse_formatted(what, bytes)?;
        for (etcd, of) in &settings.etcd {
            if !INTERVALS.contains(&of.interval_seconds) {
                return Err(SettingsError::Interval {
                    what: what.to_owned(),
                    etcd: etcd.clone(),
                    seconds: of.interval_seconds,
                });
            }
            let rare = of.changes_seconds;
            if let Some(seconds) = rare.filter(|seconds| !CHANGES_LIMITS.contains(seconds)) {
                return Err(SettingsError::Changes {
                    what: what.to_owned(),
                    etcd: etcd.clone(),
                    seconds,
                });
            }
        }
        Ok(settings)
    }

    /// The text that is stored.
    pub fn to_json(&self) -> String {
        to_pretty_json(self)
    }
}

impl EtcdBackupSettings {
    /// Time between two snapshots.
    pub fn interval(&self) -> Duration {
        Duration::from_secs(self.interval_seconds)
    }

    /// Time after which a part of the changes is closed and stored; `None`: changes are not stored.
    pub fn changes_interval(&self) -> Option<Duration> {
        let seconds = self.changes_seconds.filter(|seconds| *seconds > 0);
        seconds.map(Duration::from_secs)
    }

    /// How long scheduled snapshots are kept.
    pub fn retention(&self) -> Retention {
        Retention {
            // As by etcd-manager.
            all: Duration::from_hours(1),
            hourly: Duration::from_secs(self.hourly_retention_seconds),
            daily: Duration::from_secs(self.daily_retention_seconds),
        }
    }
}

/// Parses a period as etcd-manager does (`pkg/backupcontroller/cleanup.go`, `ParseHumanDuration`): `7d`, `1y` (365 days), or a duration of
/// Go, `36h`.
pub fn parse_period(text: &str) -> Option<Duration> {
    const DAY: u64 = 24 * 60 * 60;
    for (unit, seconds) in [("y", 365 * DAY), ("d", DAY)] {
        if let Some(count) = text.strip_suffix(unit) {
            let seconds = count.parse::<u64>().ok()?.checked_mul(seconds);
            return seconds.map(Duration::from_secs);
        }
    }
    let seconds = crate::duration::parse_seconds(text)?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_beyond_a_year_are_refused() {
        for (seconds, passes) in [
            (0, false),
            (1, true),
            (900, true),
            (365 * 86_400, true),
            (365 * 86_400 + 1, false),
            (u64::MAX, false),
        ] {
            let settings = EtcdBackupSettings {
                store: "s3://b".into(),
                interval_seconds: seconds,
                hourly_retention_seconds: u64::MAX,
                daily_retention_seconds: u64::MAX,
                recipients: Vec::new(),
                changes_seconds: None,
                unknown: UnknownFields::new(),
            };
            let settings = BackupSettings::new([("main".to_owned(), settings)].into());
            let parsed = BackupSettings::parse("settings", settings.to_json().as_bytes());
            assert_eq!(parsed.is_ok(), passes, "{seconds}: {parsed:?}");
        }
    }

    #[test]
    fn changes_that_are_stored_more_rarely_than_each_hour_are_refused() {
        for (seconds, passes) in [
            (None, true),
            (Some(0), true),
            (Some(CHANGES_SECONDS), true),
            (Some(3600), true),
            (Some(3601), false),
            (Some(u64::MAX), false),
        ] {
            let settings = EtcdBackupSettings {
                store: "s3://b".into(),
                interval_seconds: 900,
                hourly_retention_seconds: 0,
                daily_retention_seconds: 0,
                recipients: Vec::new(),
                changes_seconds: seconds,
                unknown: UnknownFields::new(),
            };
            let settings = BackupSettings::new([("main".to_owned(), settings)].into());
            let parsed = BackupSettings::parse("settings", settings.to_json().as_bytes());
            assert_eq!(parsed.is_ok(), passes, "{seconds:?}: {parsed:?}");
        }
    }

    #[test]
    fn changes_are_stored_only_if_the_settings_say_how_often() {
        for (field, interval) in [
            ("", None),
            (r#","changesSeconds":0"#, None),
            (r#","changesSeconds":5"#, Some(Duration::from_secs(5))),
        ] {
            let text = format!(
                r#"{{"store":"s3://b","intervalSeconds":900,"hourlyRetentionSeconds":0,"dailyRetentionSeconds":0{field}}}"#
            );
            let settings: EtcdBackupSettings = serde_json::from_str(&text).unwrap();
            assert_eq!(settings.changes_interval(), interval, "{field}");
            // A release that knows nothing of changes writes the same settings as before.
            let written = serde_json::to_string(&settings).unwrap();
            assert_eq!(written.contains("changesSeconds"), !field.is_empty());
        }
    }

    #[test]
    fn periods_are_those_of_etcd_manager() {
        let hours = |count| Some(Duration::from_hours(count));
        for (text, period) in [
            ("7d", hours(7 * 24)),
            ("1y", hours(365 * 24)),
            ("36h", hours(36)),
            ("90m", Some(Duration::from_mins(90))),
            ("", None),
            ("d", None),
            ("-1d", None),
            ("7w", None),
            ("99999999999999999d", None),
        ] {
            assert_eq!(parse_period(text), period, "{text}");
        }
    }
}
