//! Snapshots that kctl takes before it changes what may cost data, and the backups of a cluster that is deleted.

use super::etcd::snapshot::{BackupStore, take_snapshot, timed_name};
use super::etcd::{CommandChannel, EtcdReports};
use super::session::Session;
use crate::error::CommandError;
use crate::state::{StoreKeys, store_error};
use aws_client::store::{Entry, Expect};
use fleet::ReportedMember;
use node::backup::{BackupSettings, OWNER_KEY};
use node::etcd::kept_backups_key;
use node::secret::ENCRYPTION_CONFIG;
use std::time::Duration;

/// How long protokube may take to begin.
const BEGIN_TIME: Duration = Duration::from_mins(2);

/// The etcd cluster that holds the cluster's objects. Events are not worth a last snapshot.
pub const MAIN: &str = "main";

/// Takes a snapshot of an etcd cluster before `what`, such as `delete`, if it serves. `otherwise` is the option that goes on without.
pub async fn take_before(
    what: &str,
    (name, etcd): (&str, &str),
    otherwise: &str,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let reports = EtcdReports::find(name, session).await?.unwrap_or_default();
    let serves =
        |one: &ReportedMember| one.status.etcd == etcd && one.is_stored_lately() && one.votes();
    if !reports.members.iter().any(serves) || reports.backups.settings.is_none() {
        let note = "etcd does not serve or has no backups, so no snapshot is taken";
        session.shell.note(note);
        return Ok(());
    }
    let channel = CommandChannel {
        session,
        name,
        timeout: BEGIN_TIME,
    };
    let asked = timed_name(&format!("before-{what}"));
    let taken = take_snapshot(&asked, etcd, &channel).await;
    let says = taken.map_err(|error| {
        error.with_hint(format!(
            "nothing was changed; {otherwise} goes on without a snapshot"
        ))
    })?;
    session.shell.print_done(&says);
    Ok(())
}

/// True for the key of a backup in the cluster's folder.
pub fn is_backup(keys: &StoreKeys, entry: &Entry) -> bool {
    entry.key.starts_with(&keys.key_below("backups/"))
}

/// True for the key of an object that stays when its cluster is deleted: a backup, and the keys by which the API server encrypted Secrets,
/// without which nobody can read those in a snapshot, be it in the cluster's folder or in another store.
pub fn outlives_cluster(keys: &StoreKeys, entry: &Entry) -> bool {
    is_backup(keys, entry) || is_encryption_key(keys, entry)
}

/// True for the key of the secret with the API server's EncryptionConfiguration.
pub fn is_encryption_key(keys: &StoreKeys, entry: &Entry) -> bool {
    entry.key == keys.secret(ENCRYPTION_CONFIG)
}

/// Marks the backups in the cluster's folder as those of a deleted cluster, so that another one of its name can be created.
pub async fn mark_kept(keys: &StoreKeys, session: &Session<'_>) -> Result<(), CommandError> {
    for etcd in [MAIN, "events"] {
        let key = keys.key_below(&kept_backups_key(etcd));
        let put = session.store.put(&key, Vec::new(), Expect::Any).await;
        put.map_err(store_error)?;
    }
    Ok(())
}

/// The settings of the backups, if there are any: they are read before the state of the cluster is deleted.
pub async fn read_settings(
    name: &str,
    session: &Session<'_>,
) -> Result<Option<BackupSettings>, CommandError> {
    let reports = EtcdReports::find(name, session).await?.unwrap_or_default();
    Ok(reports.backups.settings)
}

/// Deletes the snapshots in the backup stores of these settings, unless a store is another cluster's.
pub async fn delete_backups(
    name: &str,
    settings: &BackupSettings,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    for (etcd, settings) in &settings.etcd {
        let backups = BackupStore::at(&settings.store, session)?;
        match backups.check_owner(name, etcd).await? {
            Ok(true) => {}
            Ok(false) => {
                let url = backups.store.url();
                session.shell.warning(&format!(
                    "{url} has no {OWNER_KEY}, so nobody knows whose its backups are: none of them is deleted"
                ));
                continue;
            }
            Err(why) => {
                session.shell.warning(&why);
                continue;
            }
        }
        let all = backups.list().await?;
        let mut keys: Vec<String> = all.iter().flat_map(|one| one.keys.clone()).collect();
        keys.push(OWNER_KEY.to_owned());
        backups.store.delete_all(&keys).await.map_err(store_error)?;
    }
    Ok(())
}
