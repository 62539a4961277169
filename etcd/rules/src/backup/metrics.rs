//! Metrics of the backups in the text format of Prometheus (<https://prometheus.io/docs/instrumenting/exposition_formats/>).

use super::state::BackupState;
use node::backup::EtcdBackupSettings;
use std::collections::BTreeMap;
use std::fmt::Write;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// What an instance has read last of an etcd cluster's backups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedBackups {
    pub settings: EtcdBackupSettings,
    pub state: BackupState,
}

/// A metric: its name, what it means, and its value if there is one.
type Metric = (
    &'static str,
    &'static str,
    fn(&ObservedBackups) -> Option<u64>,
);

const METRICS: [Metric; 9] = [
    (
        "interval_seconds",
        "Time between two snapshots, from the spec.",
        |one| Some(one.settings.interval_seconds),
    ),
    (
        "last_success_timestamp_seconds",
        "When the last verified snapshot was taken.",
        |one| unix_seconds(&one.state.last.as_ref()?.taken_at),
    ),
    (
        "last_size_bytes",
        "Compressed size of the last verified snapshot.",
        |one| Some(one.state.last.as_ref()?.compressed_bytes),
    ),
    (
        "last_revision",
        "Revision of the last verified snapshot.",
        |one| Some(one.state.last.as_ref()?.revision),
    ),
    (
        "failures",
        "How many snapshots have failed since the last verified one.",
        |one| {
            let failure = one.state.failure.as_ref();
            Some(failure.map_or(0, |failure| u64::from(failure.count)))
        },
    ),
    (
        "changes_timestamp_seconds",
        "When the last part of the changes was stored, as the state store says once a minute.",
        |one| unix_seconds(&one.state.changes.as_ref()?.at),
    ),
    (
        "drill_timestamp_seconds",
        "When the last drill was made.",
        |one| unix_seconds(&one.state.drill.as_ref()?.at),
    ),
    (
        "drill_duration_seconds",
        "How long the last drill took.",
        |one| Some(one.state.drill.as_ref()?.seconds),
    ),
    (
        "drill_success",
        "1 if the last drill could read its snapshot, else 0.",
        |one| Some(u64::from(!one.state.drill.as_ref()?.failed)),
    ),
];

/// The metrics of these etcd clusters.
pub fn render_backup_metrics(all: &BTreeMap<String, ObservedBackups>) -> String {
    let mut text = String::new();
    for (name, help, value) in METRICS {
        let name = format!("kctl_etcd_backup_{name}");
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
        for (etcd, observed) in all {
            if let Some(value) = value(observed) {
                let _ = writeln!(text, "{name}{{etcd=\"{etcd}\"}} {value}");
            }
        }
    }
    text
}

fn unix_seconds(time: &str) -> Option<u64> {
    let time = OffsetDateTime::parse(time, &Rfc3339).ok()?;
    u64::try_from(time.unix_timestamp()).ok()
}

#[cfg(test)]
mod tests {
    use super::super::{BackupDrill, ChangesState, LastSnapshot};
    use super::*;

    fn observed(state: BackupState) -> ObservedBackups {
        let settings = EtcdBackupSettings {
            store: "s3://b".into(),
            interval_seconds: 900,
            hourly_retention_seconds: 0,
            daily_retention_seconds: 0,
            recipients: Vec::new(),
            changes_seconds: None,
            unknown: node::formatted::UnknownFields::new(),
        };
        ObservedBackups { settings, state }
    }

    #[test]
    fn what_is_not_known_has_no_value_and_all_else_is_documented() {
        let state = BackupState {
            last: Some(LastSnapshot {
                name: "n".into(),
                store: "s3://b".into(),
                instance: "i-1".into(),
                cluster_id: None,
                revision: 7,
                compressed_bytes: 10,
                taken_at: "1970-01-01T00:01:00Z".into(),
                cluster_state_problem: None,
            }),
            changes: Some(ChangesState {
                snapshot: "n".into(),
                sequence: 3,
                revision: 9,
                instance: "i-1".into(),
                at: "1970-01-01T00:01:30Z".into(),
                failure: None,
                unknown: node::formatted::UnknownFields::new(),
            }),
            drill: Some(BackupDrill {
                name: "n".into(),
                instance: "i-1".into(),
                at: "1970-01-01T00:02:00Z".into(),
                seconds: 3,
                found: String::new(),
                failed: true,
            }),
            ..BackupState::default()
        };
        let all = [
            ("events".to_owned(), observed(BackupState::default())),
            ("main".to_owned(), observed(state)),
        ];
        let text = render_backup_metrics(&all.into());
        let values: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            values,
            [
                "kctl_etcd_backup_interval_seconds{etcd=\"events\"} 900",
                "kctl_etcd_backup_interval_seconds{etcd=\"main\"} 900",
                "kctl_etcd_backup_last_success_timestamp_seconds{etcd=\"main\"} 60",
                "kctl_etcd_backup_last_size_bytes{etcd=\"main\"} 10",
                "kctl_etcd_backup_last_revision{etcd=\"main\"} 7",
                "kctl_etcd_backup_failures{etcd=\"events\"} 0",
                "kctl_etcd_backup_failures{etcd=\"main\"} 0",
                "kctl_etcd_backup_changes_timestamp_seconds{etcd=\"main\"} 90",
                "kctl_etcd_backup_drill_timestamp_seconds{etcd=\"main\"} 120",
                "kctl_etcd_backup_drill_duration_seconds{etcd=\"main\"} 3",
                "kctl_etcd_backup_drill_success{etcd=\"main\"} 0",
            ]
        );
        let page = include_str!("../../../../docs/operations/backups.md");
        for (name, _, _) in METRICS {
            assert!(
                page.contains(&format!("`kctl_etcd_backup_{name}`")),
                "{name}"
            );
        }
    }
}
