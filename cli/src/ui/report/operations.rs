//! Who works on the cluster now, and what was done last, as `kctl lock status` and `kctl get operations` show it.

use super::html::Html;
use super::table::{list, table};
use super::{Report, SeenLock, paragraph};
use crate::state::LockKind;
use crate::ui::operations::{COLUMNS, operation_row};

pub(super) fn section(report: &Report) -> Html {
    let locks = match report.locks.as_slice() {
        [] => paragraph("Nobody holds a lock."),
        locks => list(locks.iter().map(|seen| lock_text(seen, report))),
    };
    let operations = match report.operations.as_slice() {
        [] => paragraph("The log has no operation."),
        operations => table(
            "Newest operations",
            &COLUMNS,
            operations.iter().map(operation_row),
        ),
    };
    super::section("operations", "Operations", [locks, operations])
}

fn lock_text(seen: &SeenLock, report: &Report) -> String {
    let what = match seen.kind {
        LockKind::Changes => "changes",
        LockKind::RollingUpdate => "rolling updates",
    };
    let lock = &seen.lock;
    format!(
        "lock for {what}: {}; it is {}",
        lock.describe(report.at),
        lock.state().as_str()
    )
}
