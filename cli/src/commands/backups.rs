//! Snapshots that kctl takes before it changes what may cost data, and the backups of a cluster that is deleted.

use super::etcd::snapshot::{BackupStore, take_snapshot, timed_name};
use super::etcd::{CommandChannel, EtcdReports};
use super::ownership::may_be_live;
use super::session::Session;
use crate::error::{CommandError, ErrorKind};
use crate::state::{ClusterState, StoreKeys, first_operation, store_error};
use aws_client::store::{Entry, Expect};
use cloud::{Cloud, ETCD_TAG};
use engine::{Observed, Snapshot, error_chain};
use etcd_rules::backup::{FoundSnapshot, OWNER_KEY, newest_verified};
use etcd_rules::{FormationRecord, ReportedMember, kept_backups_key};
use node::backup::{BACKUP_SETTINGS_KEY, BACKUP_SETTINGS_LIMIT, BackupSettings};
use node::duration::duration_text;
use node::secret::{ENCRYPTION_CONFIG, KEPT_ENCRYPTION_CONFIG};
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// How long protokube may take to begin.
const BEGIN_TIME: Duration = Duration::from_mins(2);

/// The etcd cluster that holds the cluster's objects. Events are not worth a last snapshot.
pub const MAIN: &str = "main";

/// Takes a snapshot of an etcd cluster before `what`, such as a restore, if it serves. `otherwise` is the option that goes on without.
pub async fn take_before(
    what: &str,
    (name, etcd): (&str, &str),
    otherwise: &str,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let reports = EtcdReports::find(name, session).await?.unwrap_or_default();
    if find_obstacle(&reports, etcd).is_some() {
        session.shell.note(NOT_TAKEN);
        return Ok(());
    }
    take_now(what, (name, etcd), otherwise, session).await
}

const NOT_TAKEN: &str = "etcd does not serve or has no backups, so no snapshot is taken";

/// Takes the last snapshot of a cluster that is deleted. If none can be taken although etcd was formed and its volumes are there, the
/// newest one must be young: nothing brings back what is on the volumes.
pub async fn take_last(
    name: &str,
    volumes: LastVolumes,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    const OTHERWISE: &str = "--no-last-backup";
    let reports = EtcdReports::find(name, session).await?.unwrap_or_default();
    let Some(obstacle) = find_obstacle(&reports, MAIN) else {
        return take_now("delete", (name, MAIN), OTHERWISE, session).await;
    };
    if !may_have_data(&reports, volumes) {
        session.shell.note(NOT_TAKEN);
        return Ok(());
    }
    let young = match find_young(name, &reports, session).await {
        Ok(Some(young)) => {
            session.shell.note(&format!(
                "{obstacle}, so no snapshot is taken; {young} is the last one"
            ));
            return Ok(());
        }
        Ok(None) => "no verified snapshot of it is younger than two intervals".to_owned(),
        Err(error) => match error.cause {
            Some(cause) => format!("its backups cannot be read: {cause:#}"),
            None => return Err(error),
        },
    };
    let error = CommandError::from_message(
        ErrorKind::Precondition,
        format!(
            "no last snapshot of etcd {MAIN} can be taken, and nothing was deleted: {obstacle}; {young}"
        ),
        format!(
            "bring back a control plane, see `kctl etcd status {name}`, and repeat the command"
        ),
    );
    Err(error.with_hint(format!(
        "if nobody needs the data: kctl delete cluster {name} {OTHERWISE} --yes"
    )))
}

/// Takes a snapshot of an etcd cluster before `what`. Fails if none can be taken. `otherwise` is the option that goes on without.
pub async fn take_now(
    what: &str,
    (name, etcd): (&str, &str),
    otherwise: &str,
    session: &Session<'_>,
) -> Result<(), CommandError> {
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

/// Why no snapshot of an etcd cluster can be taken.
fn find_obstacle(reports: &EtcdReports, etcd: &str) -> Option<String> {
    let serves =
        |one: &ReportedMember| one.status.etcd == etcd && one.is_stored_lately() && one.votes();
    let obstacle = match (
        reports.members.iter().any(serves),
        &reports.backups.settings,
    ) {
        (true, Some(_)) => return None,
        (true, None) => "there are no settings of its backups that can be read",
        (false, _) => "no member reports lately that it serves",
    };
    let gaps = reports.gaps.iter().map(|gap| format!(" ({gap})"));
    Some(format!("{obstacle}{}", gaps.collect::<String>()))
}

/// What is known of etcd's volumes in a cluster that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastVolumes {
    /// There are none.
    Gone,
    /// The state store saw them made: if it has no record of etcd, there is none.
    MadeFromHere,
    /// They are older than all that the state store knows: it was lost and brought back, or they are of kOps.
    Older,
}

/// How far the clock of the operator's computer may be ahead of AWS'.
const CLOCK_SKEW: Duration = Duration::from_mins(10);

impl LastVolumes {
    /// Compares when the volumes were made with when the log of operations begins.
    pub fn find(snapshot: &Snapshot<Cloud>, state: &ClusterState) -> Self {
        let is_of_etcd = |one: &&Observed<Cloud>| {
            matches!(&one.resource, Cloud::EbsVolume(volume)
                if volume.tags.keys().any(|key| key.starts_with(ETCD_TAG)))
        };
        let made =
            |one: &Observed<Cloud>| OffsetDateTime::parse(one.created.as_deref()?, &Rfc3339).ok();
        let mut volumes = snapshot.items.iter().filter(is_of_etcd).peekable();
        if volumes.peek().is_none() {
            return Self::Gone;
        }
        let first = first_operation(&state.keys, &state.entries);
        let is_younger = |one: &Observed<Cloud>| {
            let pair = first.zip(made(one));
            pair.is_some_and(|(first, made)| first <= made + CLOCK_SKEW)
        };
        if volumes.all(is_younger) {
            Self::MadeFromHere
        } else {
            Self::Older
        }
    }
}

/// True unless the etcd cluster of the objects was never formed. Nobody knows what a record has that cannot be read.
fn may_have_data(reports: &EtcdReports, volumes: LastVolumes) -> bool {
    match (volumes, reports.records.get(MAIN)) {
        (LastVolumes::Gone, _) => false,
        (_, Some(record)) => !record.is_forming(),
        (LastVolumes::MadeFromHere, None) => !reports.gaps.is_empty(),
        (LastVolumes::Older, None) => true,
    }
}

/// The newest verified snapshot of the etcd cluster that is recorded, with its age, if it is younger than two intervals.
async fn find_young(
    name: &str,
    reports: &EtcdReports,
    session: &Session<'_>,
) -> Result<Option<String>, CommandError> {
    let backups = BackupStore::of_cluster(name, MAIN, session).await?;
    let interval = backups.settings.as_ref().map(|of| of.interval_seconds);
    let most = Duration::from_secs(interval.unwrap_or_default()).saturating_mul(2);
    let all = backups.read_all().await?;
    let newest = newest_verified(&all, |why| session.shell.warning(why));
    let recorded = reports.records.get(MAIN);
    let recorded = recorded.and_then(FormationRecord::formed_id);
    let is_of_it = |one: &&FoundSnapshot| {
        one.manifest.as_ref().is_some_and(|of| {
            let is_named = (of.cluster.as_str(), of.etcd.as_str()) == (name, MAIN);
            let is_same = recorded.is_some() && of.cluster_id.as_deref() == recorded;
            is_named && is_same && !of.is_imported()
        })
    };
    let young = newest.filter(is_of_it).and_then(|one| {
        let age = one.age().filter(|age| *age < most)?;
        let age = duration_text(i64::try_from(age.as_secs()).ok()?);
        Some(format!("{}, {age} old,", one.name()))
    });
    Ok(young)
}

/// True for the key of a backup in the cluster's folder.
pub fn is_backup(keys: &StoreKeys, entry: &Entry) -> bool {
    entry.key.starts_with(&keys.key_below("backups/"))
}

/// True for the key of the secret with the API server's EncryptionConfiguration, and of those before it.
pub fn is_encryption_key(keys: &StoreKeys, entry: &Entry) -> bool {
    let kept = keys.secret(&format!("{KEPT_ENCRYPTION_CONFIG}-"));
    entry.key == keys.secret(ENCRYPTION_CONFIG) || entry.key.starts_with(&kept)
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

/// Deletes the snapshots in all backup stores of the cluster, unless a store is another cluster's. False if some may be left, also if
/// nobody knows: an earlier release, or a deletion that was interrupted, may have deleted the settings. Those in the
/// cluster's folder go with it. The settings are read before the state of the cluster is deleted.
pub async fn delete_backups(name: &str, session: &Session<'_>) -> Result<bool, CommandError> {
    let key = StoreKeys::new(name).key_below(BACKUP_SETTINGS_KEY);
    let read = session.store.get_first(&key, BACKUP_SETTINGS_LIMIT).await;
    let Some(bytes) = read.map_err(store_error)? else {
        session.shell.warning(&format!(
            "{name} has no settings of backups, so nobody knows whether there are any outside of its folder: none of them is deleted"
        ));
        return Ok(false);
    };
    let settings = match BackupSettings::parse(&key, &bytes) {
        Ok(settings) => settings,
        Err(error) => {
            session.shell.warning(&format!(
                "{}: backups outside of the cluster's folder are not deleted",
                error_chain(&error)
            ));
            return Ok(false);
        }
    };
    let folder = format!("{}/{name}/", session.url);
    let mut all_gone = true;
    for (etcd, settings) in &settings.etcd {
        if !settings.store.starts_with(&folder) {
            all_gone &= delete_own_backups(name, etcd, &settings.store, session).await?;
        }
    }
    Ok(all_gone)
}

/// Deletes the snapshots in the store of an etcd cluster. False if it is not known to be that cluster's.
async fn delete_own_backups(
    name: &str,
    etcd: &str,
    address: &str,
    session: &Session<'_>,
) -> Result<bool, CommandError> {
    let folder = address.split_once(&format!("/{name}/backups/"));
    if let Some((store, _)) = folder
        && may_be_live(&format!("{store}/{name}"), session).await
    {
        session.shell.warning(&format!(
            "the backups in {address} are of the cluster that is operated from {store}: none of them is deleted"
        ));
        return Ok(false);
    }
    let backups = BackupStore::at(address, session)?;
    match backups.check_owner(name, etcd, session).await? {
        Ok(true) => {}
        Ok(false) => {
            let url = backups.store.url();
            session.shell.warning(&format!(
                "{url} has no {OWNER_KEY}, so nobody knows whose its backups are: none of them is deleted"
            ));
            return Ok(false);
        }
        Err(why) => {
            session.shell.warning(&why);
            return Ok(false);
        }
    }
    let all = backups.list().await?;
    let mut keys: Vec<String> = all.iter().flat_map(|one| one.keys.clone()).collect();
    keys.push(OWNER_KEY.to_owned());
    backups.store.delete_all(&keys).await.map_err(store_error)?;
    Ok(true)
}
