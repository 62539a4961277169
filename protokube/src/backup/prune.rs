//! Deletes scheduled snapshots that are not kept any more.

use super::stored::{delete_snapshot, list_snapshots};
use aws_client::store::Store;
use node::backup::{Retention, choose_deletions};

/// Deletes what is not kept any more, and says so with `report`. If the listing fails, nothing is deleted.
pub(crate) async fn prune_snapshots(
    backups: &Store,
    retention: Retention,
    report: impl Fn(&str),
) -> anyhow::Result<()> {
    let all = list_snapshots(backups).await?;
    for old in choose_deletions(&all, retention) {
        delete_snapshot(backups, old).await?;
        report(&format!(
            "deleted the snapshot {}/{}",
            backups.url(),
            old.name
        ));
    }
    Ok(())
}
