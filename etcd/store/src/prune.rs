//! Deletes scheduled snapshots that are not kept any more.

use super::backup_store::{delete_snapshot, read_snapshots};
use aws_client::store::Store;
use etcd_rules::backup::{
    FoundSnapshot, SnapshotManifest, StoredSnapshot, Unread, check_extent, choose_deletions,
    find_successors, is_scheduled,
};
use node::backup::Retention;
use std::collections::BTreeMap;

/// How much is deleted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// No more than nobody has to look at.
    Checked,
    /// Whatever is not kept any more: a folder of this instance must not fill its disk.
    All,
}

/// The scheduled snapshots that are not kept any more.
#[derive(Clone, Debug)]
pub struct Superfluous {
    /// The whole listing, as deletions are chosen.
    pub all: Vec<StoredSnapshot>,
    /// Those of it, the oldest first.
    pub chosen: Vec<StoredSnapshot>,
}

impl Superfluous {
    /// Checks that they are so few that nobody has to look. The error says how many they are.
    pub fn check_extent(&self) -> Result<(), String> {
        check_extent(&self.all, &self.chosen.iter().collect::<Vec<_>>())
    }
}

/// Finds what is not kept any more. `report` is told what stays although it is not kept, and what stands for no other.
pub async fn find_superfluous(
    backups: &Store,
    retention: Retention,
    report: impl Fn(&str),
) -> anyhow::Result<Superfluous> {
    let (mut listed, mut all) = (Vec::new(), Vec::new());
    let mut manifests = BTreeMap::new();
    for found in read_snapshots(backups).await? {
        all.push(only_restorable(&found, &report));
        if let Some(manifest) = found.manifest {
            manifests.insert(found.stored.name.clone(), manifest);
        }
        listed.push(found.stored);
    }
    let mut chosen = Vec::new();
    for old in choose_deletions(&all, retention) {
        // Of the whole listing: one whose manifest nobody knows may be the first of another etcd cluster.
        let next = find_successors(&listed, old).into_iter();
        let next: Option<Vec<_>> = next.map(|next| manifests.get(&next.name)).collect();
        let own = manifests.get(&old.name);
        match next.map(|next| is_last_of_its_cluster(own, &next)) {
            _ if !old.has_manifest => chosen.push(old.clone()),
            Some(false) => chosen.push(old.clone()),
            Some(true) => {}
            None => report(&format!(
                "the snapshot {} is not deleted, although it is not kept any more: nobody knows of which etcd cluster the next one is",
                old.name
            )),
        }
    }
    Ok(Superfluous { all, chosen })
}

/// The snapshot as deletions are chosen. One whose manifest nobody knows cannot be restored, for all that is known: it takes the place of
/// none that can, and is not deleted by itself.
fn only_restorable(found: &FoundSnapshot, report: impl Fn(&str)) -> StoredSnapshot {
    let mut one = found.stored.clone();
    if one.has_manifest && one.has_data && is_scheduled(&one.name) && found.manifest.is_none() {
        one.has_data = false;
        let why = found.problem.as_ref().map(Unread::text);
        report(&format!(
            "the snapshot {} stands for no other when old ones are deleted: {}",
            one.name,
            why.unwrap_or("its manifest was deleted meanwhile")
        ));
    }
    one
}

/// True if one of the next snapshots is of another etcd cluster: this one has what was last written to one that was lost or given up.
fn is_last_of_its_cluster(own: Option<&SnapshotManifest>, next: &[&SnapshotManifest]) -> bool {
    let own = own.and_then(|own| own.cluster_id.as_ref());
    let mut next = next.iter().filter_map(|next| next.cluster_id.as_ref());
    own.is_some_and(|own| next.any(|next| next != own))
}

/// Deletes what is not kept any more, and says so with `report`. If the listing fails, or it is too much, nothing is deleted. One that
/// cannot be deleted does not keep the others; the error is that of the first.
pub async fn prune_snapshots(
    backups: &Store,
    (retention, extent): (Retention, Extent),
    report: impl Fn(&str),
) -> anyhow::Result<()> {
    let superfluous = find_superfluous(backups, retention, &report).await?;
    if extent == Extent::Checked
        && let Err(many) = superfluous.check_extent()
    {
        report(&format!(
            "nothing is deleted in {}: {many}. Look, and delete them: kctl etcd snapshot prune --force",
            backups.url()
        ));
        return Ok(());
    }
    let mut failed = None;
    for old in &superfluous.chosen {
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
