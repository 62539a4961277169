//! `kctl etcd snapshot delete` and `prune`: snapshots are deleted by the exact keys of their objects, and never the newest verified one.

use super::{BackupStore, FoundSnapshot, refuse};
use crate::args::{SnapshotDelete, SnapshotPrune};
use crate::commands::session::Session;
use crate::error::{CommandError, Outcome};
use crate::state::store_error;
use aws_client::store::Expect;
use node::backup::{EtcdBackupSettings, StoredSnapshot, choose_deletions, find_successor};

/// Deletes named snapshots.
pub async fn delete(args: &SnapshotDelete, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(None).await?;
    let backups = BackupStore::to_change(&name, &args.place.etcd, session).await?;
    let all = backups.read_all().await?;
    let newest = all.iter().find(|one| one.is_verified());
    let mut chosen = Vec::new();
    for name in &args.snapshots {
        let found = all.iter().find(|one| one.name() == name);
        let found = found
            .ok_or_else(|| refuse(format!("{} has no snapshot {name}", backups.store.url())))?;
        if newest.is_some_and(|newest| newest.name() == name) {
            return Err(refuse(format!(
                "{name} is the newest verified snapshot: nothing was deleted"
            )));
        }
        chosen.push(&found.stored);
    }
    delete_all(&backups, &chosen, args.yes, session).await
}

/// Deletes scheduled snapshots that are not kept any more.
pub async fn prune(args: &SnapshotPrune, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(None).await?;
    let backups = BackupStore::to_change(&name, &args.place.etcd, session).await?;
    let found = backups.read_all().await?;
    let all: Vec<StoredSnapshot> = found.iter().map(|one| one.stored.clone()).collect();
    let kept = backups.settings.as_ref().map(EtcdBackupSettings::retention);
    let mut chosen = kept.map_or_else(Vec::new, |kept| choose_deletions(&all, kept));
    chosen.retain(|old| !is_last_of_its_cluster(&found, &all, old));
    if chosen.is_empty() {
        let text = format!("all {} snapshots are kept\n", all.len());
        session.shell.print_result(&text)?;
        return Ok(Outcome::Fine);
    }
    delete_all(&backups, &chosen, args.yes, session).await
}

/// True if the next snapshot is of another etcd cluster: this one has what was last written to one that was lost or given up.
fn is_last_of_its_cluster(
    found: &[FoundSnapshot],
    all: &[StoredSnapshot],
    old: &StoredSnapshot,
) -> bool {
    let id_of = |name: &str| {
        let one = found.iter().find(|one| one.name() == name)?;
        one.manifest.as_ref()?.cluster_id.clone()
    };
    let next = find_successor(all, old).and_then(|next| id_of(&next.name));
    let ids = id_of(&old.name).zip(next);
    ids.is_some_and(|(own, next)| own != next)
}

async fn delete_all(
    backups: &BackupStore,
    chosen: &[&StoredSnapshot],
    yes: bool,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    for one in chosen {
        if yes {
            delete_one(backups, one).await?;
            session.shell.print_done(&format!("deleted {}", one.name));
        } else {
            session
                .shell
                .print_result(&format!("deletes {}\n", one.name))?;
        }
    }
    if !yes {
        session.shell.hint("the same command with --yes does it");
    }
    Ok(Outcome::Fine)
}

async fn delete_one(backups: &BackupStore, one: &StoredSnapshot) -> Result<(), CommandError> {
    for key in one.keys_to_delete() {
        let deleted = backups.store.delete(&key, Expect::Any).await;
        deleted.map_err(store_error)?;
    }
    Ok(())
}
