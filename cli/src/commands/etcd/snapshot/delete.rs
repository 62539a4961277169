//! `kctl etcd snapshot delete` and `prune`: snapshots are deleted by the exact keys of their objects, and never the newest verified one.

use super::{BackupStore, failed_store, refuse};
use crate::args::{SnapshotDelete, SnapshotPrune};
use crate::commands::etcd::restore_point::count_parts;
use crate::commands::session::Session;
use crate::error::{CommandError, Outcome};
use etcd_rules::backup::StoredSnapshot;
use etcd_store::{delete_snapshot, find_superfluous};
use node::backup::EtcdBackupSettings;
use std::cell::RefCell;

/// How many snapshots that cannot be read are named.
const REPORTS: usize = 5;

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
        if found.is_newest_verified(&all) {
            let hint = format!(
                "take another one first: `kctl etcd snapshot save --etcd {}`",
                args.place.etcd
            );
            return Err(refuse(format!(
                "{name} is the newest verified snapshot{}: nothing was deleted",
                found.doubt()
            ))
            .with_hint(hint));
        }
        chosen.push(&found.stored);
    }
    delete_all(&backups, &chosen, args.yes, session).await
}

/// Deletes scheduled snapshots that are not kept any more.
pub async fn prune(args: &SnapshotPrune, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(None).await?;
    let backups = BackupStore::to_change(&name, &args.place.etcd, session).await?;
    let Some(kept) = backups.settings.as_ref().map(EtcdBackupSettings::retention) else {
        return Err(refuse(format!("{name} has no settings of backups")));
    };
    let reports = RefCell::new(Vec::new());
    let report = |what: &str| reports.borrow_mut().push(what.to_owned());
    let superfluous = find_superfluous(&backups.store, kept, report).await;
    let superfluous = superfluous.map_err(failed_store)?;
    warn_of_some(&reports.into_inner(), session);
    if superfluous.chosen.is_empty() {
        let text = format!("all {} snapshots are kept\n", superfluous.all.len());
        session.shell.print_result(&text)?;
        return Ok(Outcome::Fine);
    }
    if let Err(many) = superfluous.check_extent()
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
    let chosen: Vec<&StoredSnapshot> = superfluous.chosen.iter().collect();
    delete_all(&backups, &chosen, args.yes, session).await
}

/// If nobody may read manifests, each of them is a report.
fn warn_of_some(reports: &[String], session: &Session<'_>) {
    for report in reports.iter().take(REPORTS) {
        session.shell.warning(report);
    }
    let more = reports.len().saturating_sub(REPORTS);
    if more > 0 {
        session
            .shell
            .warning(&format!("{more} more snapshots stay for such a reason"));
    }
}

/// A snapshot with what is deleted with it.
fn describe(one: &StoredSnapshot) -> String {
    match u32::try_from(one.parts.len()).unwrap_or(u32::MAX) {
        0 => one.name.clone(),
        parts => format!("{} and {} after it", one.name, count_parts(parts)),
    }
}

async fn delete_all(
    backups: &BackupStore,
    chosen: &[&StoredSnapshot],
    yes: bool,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let mut failed = Vec::new();
    for one in chosen {
        let what = describe(one);
        if !yes {
            session.shell.print_result(&format!("deletes {what}\n"))?;
            continue;
        }
        match delete_snapshot(&backups.store, one).await {
            Ok(()) => session.shell.print_done(&format!("deleted {what}")),
            Err(error) => failed.push((&one.name, failed_store(error))),
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
