//! Deletes scheduled snapshots that are not kept any more.

use super::backup_store::{delete_snapshot, list_snapshots, read_manifest};
use aws_client::store::Store;
use node::backup::{Retention, StoredSnapshot, check_extent, choose_deletions, find_successors};

/// How much is deleted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// No more than nobody has to look at.
    Checked,
    /// Whatever is not kept any more: a folder of this instance must not fill its disk.
    All,
}

/// Deletes what is not kept any more, and says so with `report`. If the listing fails, or it is too much, nothing is deleted. One that
/// cannot be deleted does not keep the others; the error is that of the first.
pub(crate) async fn prune_snapshots(
    backups: &Store,
    (retention, extent): (Retention, Extent),
    report: impl Fn(&str),
) -> anyhow::Result<()> {
    let all = list_snapshots(backups).await?;
    let mut chosen = Vec::new();
    for old in choose_deletions(&all, retention) {
        match is_last_of_its_cluster(backups, &all, old).await {
            Ok(true) => {}
            Ok(false) => chosen.push(old),
            Err(error) => report(&format!(
                "the snapshot {} is not deleted, although it is not kept any more: {error:#}",
                old.name
            )),
        }
    }
    if extent == Extent::Checked
        && let Err(many) = check_extent(&all, &chosen)
    {
        report(&format!(
            "nothing is deleted in {}: {many}. Look, and delete them: kctl etcd snapshot prune --force",
            backups.url()
        ));
        return Ok(());
    }
    let mut failed = None;
    for old in chosen {
        match delete_snapshot(backups, old).await {
            Ok(()) => report(&format!(
                "deleted the snapshot {}/{}",
                backups.url(),
                old.name
            )),
            Err(error) => {
                failed.get_or_insert(error);
            }
        }
    }
    failed.map_or(Ok(()), Err)
}

/// True if the next snapshot is of another etcd cluster: this one has what was last written to one that was lost or given up. It may be, if
/// one of the two manifests cannot be read.
async fn is_last_of_its_cluster(
    backups: &Store,
    all: &[StoredSnapshot],
    old: &StoredSnapshot,
) -> anyhow::Result<bool> {
    if !old.has_manifest {
        return Ok(false);
    }
    let id_of = async |name: &str| {
        let manifest = read_manifest(backups, name).await?;
        anyhow::Ok(manifest.and_then(|manifest| manifest.cluster_id))
    };
    let own = id_of(&old.name).await?;
    for next in find_successors(all, old) {
        let next = id_of(&next.name).await?;
        if own.is_some() && next.is_some() && own != next {
            return Ok(true);
        }
    }
    Ok(false)
}
