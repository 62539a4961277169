//! Deletes scheduled snapshots that are not kept any more, by the exact keys of their objects.

use crate::log::RoleLog;
use anyhow::Context;
use aws_client::store::{Expect, Store, StoreError};
use node::backup::{Retention, choose_deletions, group_snapshots};

/// Deletes what is not kept any more. If the listing fails, nothing is deleted.
pub(super) async fn prune_snapshots(
    backups: &Store,
    retention: Retention,
    role_log: &RoleLog,
) -> anyhow::Result<()> {
    let listed = backups.list("", None).await;
    let listed = listed.with_context(|| format!("could not list {}", backups.url()))?;
    let objects = listed
        .iter()
        .map(|entry| (entry.key.as_str(), entry.size, entry.written, entry.age));
    let all = group_snapshots(objects);
    for old in choose_deletions(&all, retention) {
        for key in old.keys_to_delete() {
            match backups.delete(&key, Expect::Any).await {
                Ok(()) | Err(StoreError::Conflict { .. }) => {}
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("could not delete {}/{key}", backups.url()));
                }
            }
        }
        role_log.report_change(&format!(
            "deleted the snapshot {}/{}",
            backups.url(),
            old.name
        ));
    }
    Ok(())
}
