//! What the members of the etcd clusters report in the state store, and the records of the clusters.

use crate::commands::session::Session;
use crate::error::CommandError;
use crate::state::{StoreKeys, store_error};
use aws_client::store::Entry;
use engine::error_chain;
use etcd_rules::backup::{BACKUP_STATE_LIMIT, BackupState, StoredBackups};
use etcd_rules::{
    FormationRecord, MEMBER_STATUS_LIMIT, ReportedMember, describe_members, read_member_status,
};
use etcd_store::RECORD_LIMIT;
use futures::{StreamExt, TryStreamExt, stream};
use node::backup::{BACKUP_SETTINGS_KEY, BACKUP_SETTINGS_LIMIT, BackupSettings};
use std::collections::BTreeMap;
use std::time::Duration;
use time::OffsetDateTime;

/// Objects that are read at the same time.
const PARALLEL: usize = 10;

/// The end of the path of a backup state, after the name of its etcd cluster.
const BACKUP_STATE: &str = "/backups.json";

/// The members of all etcd clusters of a cluster, as they report.
#[derive(Debug, Default)]
pub struct EtcdReports {
    /// Sorted by etcd cluster and member.
    pub members: Vec<ReportedMember>,
    /// By etcd cluster.
    pub records: BTreeMap<String, FormationRecord>,
    /// Settings and state of the backups.
    pub backups: StoredBackups,
    /// What cannot be understood, one message each. The rest is complete without it.
    pub gaps: Vec<String>,
}

impl EtcdReports {
    /// Reads them. What cannot be understood is a warning. Without any object, the cluster must exist.
    pub async fn read(name: &str, session: &Session<'_>) -> Result<Self, CommandError> {
        let Some(reports) = Self::find(name, session).await? else {
            session.check_cluster_exists(name).await?;
            session.shell.note(&format!(
                "no control plane of {name} has formed etcd or reported yet: `kctl get instances` shows how far they are"
            ));
            return Ok(Self::default());
        };
        reports
            .gaps
            .iter()
            .for_each(|gap| session.shell.warning(gap));
        Ok(reports)
    }

    /// Reads them; `None` if there is no object. One call for the list, and one for each report and record.
    pub async fn find(name: &str, session: &Session<'_>) -> Result<Option<Self>, CommandError> {
        let prefix = StoreKeys::new(name).key_below("etcd/");
        let entries = session.store.list(&prefix, None).await;
        let entries = entries.map_err(store_error)?;
        if entries.is_empty() {
            return Ok(None);
        }
        let objects = read_objects(&prefix, &entries, session).await?;
        let mut members = Vec::new();
        let mut records = BTreeMap::new();
        let mut gaps = Vec::new();
        let mut backups = read_backup_settings(name, session, &mut gaps).await?;
        let mut ages = BTreeMap::new();
        for (path, bytes, age) in &objects {
            if path.ends_with(".status.json") {
                match read_member_status(&format!("etcd/{path}"), bytes) {
                    Ok(status) => {
                        ages.insert((status.etcd.clone(), status.instance.clone()), *age);
                        members.push(status);
                    }
                    Err(why) => gaps.push(format!(
                        "{prefix}{path} is not the status of a member: {why}"
                    )),
                }
            } else if let Some(etcd) = path.strip_suffix(BACKUP_STATE) {
                match BackupState::parse(path, bytes) {
                    Ok(state) => drop(backups.states.insert(etcd.to_owned(), state)),
                    Err(error) => gaps.push(format!("{prefix}{}", error_chain(&error))),
                }
            } else if let Some(etcd) = path.strip_suffix(".json") {
                match FormationRecord::parse(path, bytes) {
                    Ok(record) => drop(records.insert(etcd.to_owned(), record)),
                    Err(error) => gaps.push(format!("{prefix}{}", error_chain(&error))),
                }
            }
        }
        let mut members = describe_members(members, OffsetDateTime::now_utc());
        for member in &mut members {
            let status = &member.status;
            let age = ages.get(&(status.etcd.clone(), status.instance.clone()));
            let age = age.copied().flatten().map(|age| age.as_secs());
            member.stored_seconds = age.and_then(|age| i64::try_from(age).ok());
        }
        members.retain(|one| {
            let record = records.get(&one.status.etcd);
            !record.is_some_and(|record: &FormationRecord| one.is_left_behind(record))
        });
        Ok(Some(Self {
            members,
            records,
            backups,
            gaps,
        }))
    }
}

/// The settings of the backups, without states.
async fn read_backup_settings(
    name: &str,
    session: &Session<'_>,
    gaps: &mut Vec<String>,
) -> Result<StoredBackups, CommandError> {
    let key = StoreKeys::new(name).key_below(BACKUP_SETTINGS_KEY);
    let read = session
        .store
        .get_first_with_age(&key, BACKUP_SETTINGS_LIMIT);
    let Some((bytes, age)) = read.await.map_err(store_error)? else {
        return Ok(StoredBackups::default());
    };
    let settings = BackupSettings::parse(&key, &bytes);
    let settings = settings.map_err(|error| gaps.push(error_chain(&error)));
    Ok(StoredBackups {
        settings: settings.ok(),
        settings_age: age.and_then(|age| i64::try_from(age.as_secs()).ok()),
        ..StoredBackups::default()
    })
}

/// Path below `etcd/`, content, and age by the store's clock.
type StoredObject = (String, Vec<u8>, Option<Duration>);

/// The records and the status of members.
async fn read_objects(
    prefix: &str,
    entries: &[Entry],
    session: &Session<'_>,
) -> Result<Vec<StoredObject>, CommandError> {
    let wanted = entries.iter().filter_map(|entry| {
        let path = entry.key.strip_prefix(prefix)?;
        let limit = match path.split('/').count() {
            1 => RECORD_LIMIT,
            _ if path.ends_with(".status.json") => MEMBER_STATUS_LIMIT + 1,
            2 if path.ends_with(BACKUP_STATE) => BACKUP_STATE_LIMIT,
            _ => return None,
        };
        Some((path.to_owned(), entry.key.clone(), limit))
    });
    let reads = wanted.map(|(path, key, limit)| async move {
        let found = session.store.get_first_with_age(&key, limit).await;
        let found = found.map_err(store_error)?;
        Ok::<_, CommandError>(found.map(|(bytes, age)| (path, bytes, age)))
    });
    // In order, so that the same state is always shown in the same way.
    let found: Vec<Option<StoredObject>> =
        stream::iter(reads).buffered(PARALLEL).try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}
