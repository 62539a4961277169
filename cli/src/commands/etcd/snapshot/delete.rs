//! `kctl etcd snapshot delete` and `prune`: snapshots are deleted by the exact keys of their objects, and never the newest verified one.

use super::{BackupStore, refuse};
use crate::args::{SnapshotDelete, SnapshotPrune};
use crate::commands::session::Session;
use crate::error::{CommandError, Outcome};
use crate::state::store_error;
use aws_client::store::Expect;
use node::backup::{StoredSnapshot, choose_deletions};

/// Deletes named snapshots.
pub async fn delete(args: &SnapshotDelete, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let backups = BackupStore::open(None, &args.place.etcd, session).await?;
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
    let backups = BackupStore::open(None, &args.place.etcd, session).await?;
    let Some(settings) = &backups.settings else {
        return Ok(Outcome::Fine);
    };
    let all: Vec<StoredSnapshot> = backups.list().await?;
    let chosen = choose_deletions(&all, settings.retention());
    if chosen.is_empty() {
        let text = format!("all {} snapshots are kept\n", all.len());
        session.shell.print_result(&text)?;
        return Ok(Outcome::Fine);
    }
    delete_all(&backups, &chosen, args.yes, session).await
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
