//! `kctl etcd snapshot delete` and `prune`: snapshots are deleted by the exact keys of their objects, and never the newest verified one.

use super::{BackupStore, FoundSnapshot, refuse};
use crate::args::{SnapshotDelete, SnapshotPrune};
use crate::commands::session::Session;
use crate::error::{CommandError, Outcome};
use crate::state::store_error;
use aws_client::store::Expect;
use etcd_rules::backup::{StoredSnapshot, check_extent, choose_deletions, find_successors};
use node::backup::EtcdBackupSettings;

/// Deletes named snapshots.
pub async fn delete(args: &SnapshotDelete, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(None).await?;
    let backups = BackupStore::to_change(&name, &args.place.etcd, session).await?;
    let all = backups.read_all().await?;
    let mut chosen = Vec::new();
    for name in &args.snapshots {
        let found = all.iter().find(|one| one.name() == name);
        let found = found
            .ok_or_else(|| refuse(format!("{} has no snapshot {name}", backups.store.url())))?;
        if is_newest(&all, found) {
            let known = match &found.problem {
                Some(problem) => format!(", as far as is known: {}", problem.text()),
                None => String::new(),
            };
            let hint = format!(
                "take another one first: `kctl etcd snapshot save --etcd {}`",
                args.place.etcd
            );
            return Err(refuse(format!(
                "{name} is the newest verified snapshot{known}: nothing was deleted"
            ))
            .with_hint(hint));
        }
        chosen.push(&found.stored);
    }
    delete_all(&backups, &chosen, args.yes, session).await
}

/// True for the newest verified snapshot, by the time of writing or by when it was taken. One whose manifest cannot be read now may be.
/// One that was imported is older than all others, because nobody knows when its data was current.
fn is_newest(all: &[FoundSnapshot], one: &FoundSnapshot) -> bool {
    let orders: [fn(&FoundSnapshot) -> Option<i64>; 2] =
        [|one| one.stored.written, FoundSnapshot::taken];
    one.may_be_verified()
        && orders.into_iter().any(|time| {
            let place = |of: &FoundSnapshot| {
                let times = (time(of), of.stored.written);
                (!of.is_imported(), times, of.stored.name.clone())
            };
            let others = all.iter().filter(|other| other.is_verified());
            others.map(place).max() <= Some(place(one))
        })
}

/// Deletes scheduled snapshots that are not kept any more.
pub async fn prune(args: &SnapshotPrune, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(None).await?;
    let backups = BackupStore::to_change(&name, &args.place.etcd, session).await?;
    let found = backups.read_all().await?;
    let all: Vec<StoredSnapshot> = found.iter().map(as_restorable).collect();
    let kept = backups.settings.as_ref().map(EtcdBackupSettings::retention);
    let mut chosen = kept.map_or_else(Vec::new, |kept| choose_deletions(&all, kept));
    chosen.retain(|old| !is_last_of_its_cluster(&found, &all, old));
    if chosen.is_empty() {
        let text = format!("all {} snapshots are kept\n", all.len());
        session.shell.print_result(&text)?;
        return Ok(Outcome::Fine);
    }
    if let Err(many) = check_extent(&all, &chosen)
        && !args.force
    {
        if args.yes {
            return Err(refuse(format!("{many}: nothing was deleted")).with_hint(
                "look at what would be deleted: the same command without --yes; --force deletes it",
            ));
        }
        session
            .shell
            .warning(&format!("{many}, unless --force is added"));
    }
    delete_all(&backups, &chosen, args.yes, session).await
}

/// The snapshot as deletions are chosen: one whose manifest cannot be used cannot be restored, takes the place of none that can, and is
/// not deleted by itself.
fn as_restorable(one: &FoundSnapshot) -> StoredSnapshot {
    StoredSnapshot {
        has_data: one.stored.has_data && one.problem.is_none(),
        ..one.stored.clone()
    }
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
    let own = id_of(&old.name);
    find_successors(all, old).into_iter().any(|next| {
        let next = id_of(&next.name);
        own.is_some() && next.is_some() && own != next
    })
}

async fn delete_all(
    backups: &BackupStore,
    chosen: &[&StoredSnapshot],
    yes: bool,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let mut failed = Vec::new();
    for one in chosen {
        if !yes {
            session
                .shell
                .print_result(&format!("deletes {}\n", one.name))?;
            continue;
        }
        match delete_one(backups, one).await {
            Ok(()) => session.shell.print_done(&format!("deleted {}", one.name)),
            Err(error) => failed.push((&one.name, error)),
        }
    }
    if !yes {
        session.shell.hint("the same command with --yes does it");
    }
    let mut first = None;
    for (name, mut error) in failed {
        error.cause = error
            .cause
            .map(|cause| cause.context(format!("{name} was not deleted")));
        if first.is_none() {
            first = Some(error);
        } else if let Some(cause) = error.cause {
            session.shell.warning(&format!("{cause:#}"));
        }
    }
    first.map_or(Ok(Outcome::Fine), Err)
}

async fn delete_one(backups: &BackupStore, one: &StoredSnapshot) -> Result<(), CommandError> {
    for key in one.keys_to_delete() {
        let deleted = backups.store.delete(&key, Expect::Any).await;
        deleted.map_err(store_error)?;
    }
    Ok(())
}
