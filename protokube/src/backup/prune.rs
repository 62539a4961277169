//! Deletes scheduled snapshots that are not kept any more.

use super::backup_store::{delete_snapshot, list_snapshots, read_manifest};
use aws_client::store::Store;
use node::backup::{Retention, StoredSnapshot, choose_deletions, find_successor};

/// Deletes what is not kept any more, and says so with `report`. If the listing fails, nothing is deleted.
pub(crate) async fn prune_snapshots(
    backups: &Store,
    retention: Retention,
    report: impl Fn(&str),
) -> anyhow::Result<()> {
    let all = list_snapshots(backups).await?;
    for old in choose_deletions(&all, retention) {
        if is_last_of_its_cluster(backups, &all, old).await? {
            continue;
        }
        delete_snapshot(backups, old).await?;
        report(&format!(
            "deleted the snapshot {}/{}",
            backups.url(),
            old.name
        ));
    }
    Ok(())
}

/// True if the next snapshot is of another etcd cluster: this one has what was last written to one that was lost or given up.
async fn is_last_of_its_cluster(
    backups: &Store,
    all: &[StoredSnapshot],
    old: &StoredSnapshot,
) -> anyhow::Result<bool> {
    let Some(next) = find_successor(all, old).filter(|_| old.has_manifest) else {
        return Ok(false);
    };
    let (own, next) = (
        read_manifest(backups, &old.name).await?,
        read_manifest(backups, &next.name).await?,
    );
    let ids = own
        .and_then(|own| own.0.cluster_id)
        .zip(next.and_then(|next| next.0.cluster_id));
    Ok(ids.is_some_and(|(own, next)| own != next))
}
