//! Backups: the last moment to which each etcd cluster can be restored, and what became of the last snapshot and of the last drill.

use super::html::Html;
use super::table::table;
use super::{Report, paragraph};
use crate::ui::etcd::{RESTORABLE_COLUMNS, RestorableRow, restorable_row};
use etcd_rules::backup::BackupState;
use indicatif::BinaryBytes;

const SNAPSHOT_COLUMNS: [&str; 7] = [
    "ETCD",
    "LAST SNAPSHOT",
    "TAKEN",
    "SIZE",
    "STORE",
    "LAST DRILL",
    "FAILED SINCE",
];

pub(super) fn section(report: &Report) -> Html {
    if report.backups.is_empty() {
        let none = paragraph("protokube has stored no state of backups.");
        return super::section("backups", "Backups", [none]);
    }
    // Without stored changes, the snapshot is the last moment.
    let of_snapshots = report.backups.iter();
    let of_snapshots = of_snapshots.filter(|(etcd, _)| {
        let mut rows = report.restorable.iter();
        !rows.any(|row| row.etcd == **etcd)
    });
    let of_snapshots = of_snapshots.filter_map(|(etcd, state)| snapshot_moment(etcd, state));
    let mut moments = report.restorable.clone();
    moments.extend(of_snapshots);
    moments.sort_by(|a, b| a.etcd.cmp(&b.etcd));
    let states = report.backups.iter();
    super::section(
        "backups",
        "Backups",
        [
            table(
                "Last moment to which each etcd cluster can be restored",
                &RESTORABLE_COLUMNS,
                moments.iter().map(restorable_row),
            ),
            table(
                "Snapshots",
                &SNAPSHOT_COLUMNS,
                states.map(|(etcd, state)| snapshot_row(etcd, state)),
            ),
        ],
    )
}

fn snapshot_moment(etcd: &str, state: &BackupState) -> Option<RestorableRow> {
    let last = state.last.as_ref()?;
    Some(RestorableRow {
        etcd: etcd.to_owned(),
        until: Some(last.taken_at.clone()),
        age_seconds: None,
        snapshot: last.name.clone(),
        parts: 0,
        clock: Some(last.instance.clone()),
    })
}

fn snapshot_row(etcd: &str, state: &BackupState) -> Vec<String> {
    let mut row = vec![etcd.to_owned()];
    row.extend(match &state.last {
        Some(last) => [
            last.name.clone(),
            last.taken_at.clone(),
            BinaryBytes(last.compressed_bytes).to_string(),
            last.store.clone(),
        ],
        None => <[String; 4]>::default(),
    });
    let drill = state.drill.as_ref().map(|drill| {
        let end = if drill.failed { "failed" } else { "passed" };
        format!(
            "{end} at {} on {}: {}",
            drill.at, drill.instance, drill.found
        )
    });
    let failure = state.failure.as_ref().map(|failure| {
        format!(
            "{} times, the last at {} on {}: {}",
            failure.count, failure.at, failure.instance, failure.reason
        )
    });
    row.extend([drill.unwrap_or_default(), failure.unwrap_or_default()]);
    row
}
