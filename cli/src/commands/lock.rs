//! `kctl lock`: shows the lock of a cluster, and releases one whose holder has died.

use super::document::print_document;
use super::session::Session;
use crate::args::{LockRelease, LockStatus, LockWhat, ReportFormat};
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::state::{LockKind, LockState, ObservedLock, StoreKeys, store_error};
use crate::ui::lock as shown;
use aws_client::store::{Expect, StoreError};
use serde::Serialize;
use time::OffsetDateTime;

/// A lock as JSON or YAML.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LockDocument<'a> {
    format: u32,
    cluster: &'a str,
    /// `free`, `alive`, `expired`, `dead`.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    who: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    renewals: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    age_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    life_seconds: Option<u64>,
    /// Time until it expires without a renewal.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_in_seconds: Option<u64>,
}

impl<'a> LockDocument<'a> {
    fn new(cluster: &'a str, lock: Option<&'a ObservedLock>) -> Self {
        let holder = lock.and_then(|lock| lock.holder.as_ref());
        let standing = lock.map(ObservedLock::state);
        Self {
            format: 1,
            cluster,
            state: standing.map_or("free", LockState::as_str),
            who: holder.map(|holder| holder.who.as_str()),
            process: holder.map(|holder| holder.process),
            command: holder.map(|holder| holder.what.as_str()),
            since: holder.map(|holder| holder.since.as_str()),
            renewals: holder.map(|holder| holder.renewed),
            age_seconds: lock.and_then(|lock| lock.age).map(|age| age.as_secs()),
            life_seconds: lock.map(|lock| lock.life().as_secs()),
            expires_in_seconds: match standing {
                Some(LockState::Alive(left)) => left.map(|left| left.as_secs()),
                _ => None,
            },
        }
    }
}

/// Runs `kctl lock`.
pub async fn run(what: &LockWhat, session: &Session<'_>) -> Result<Outcome, CommandError> {
    match what {
        LockWhat::Status(what) => show_lock(what, session).await,
        LockWhat::Release(what) => release_lock(what, session).await,
    }
}

/// Shows the lock: `kctl lock status`.
async fn show_lock(args: &LockStatus, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let kind = selected_kind(args.rolling_update);
    let (name, lock) = read_lock(args.cluster.as_deref(), kind, session).await?;
    let document = LockDocument::new(&name, lock.as_ref());
    if args.output == ReportFormat::Table {
        let table = shown::lock_table(&name, lock.as_ref(), OffsetDateTime::now_utc());
        session.shell.print_result(&table)?;
        return Ok(Outcome::Fine);
    }
    print_document(&document, args.output, session.shell)?;
    Ok(Outcome::Fine)
}

/// Deletes the lock: `kctl lock release`.
async fn release_lock(args: &LockRelease, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let kind = selected_kind(args.rolling_update);
    let (name, lock) = read_lock(args.cluster.as_deref(), kind, session).await?;
    let Some(lock) = lock else {
        session.shell.note(&format!("{name} is not locked"));
        return Ok(Outcome::Fine);
    };
    let now = OffsetDateTime::now_utc();
    session
        .shell
        .print_result(&shown::lock_table(&name, Some(&lock), now))?;
    let option = kind.option();
    let alive = matches!(lock.state(), LockState::Alive(_));
    if alive && !args.force {
        return Err(CommandError::from_message(
            ErrorKind::Precondition,
            format!("the lock of {name} is in use"),
            "wait until its holder is done, or until it expires: the next command takes it over then",
        )
        .with_hint(format!(
            "if you know that its holder is dead: kctl lock release {name}{option} --force --yes"
        )));
    }
    let force = if alive { " --force" } else { "" };
    let question = format!("Release the lock of {name}? Type yes:");
    if !args.yes && !session.shell.confirm(&question, "yes").await {
        return Err(CommandError::from_message(
            ErrorKind::Usage,
            format!("the lock of {name} was not released"),
            format!("type yes, or: kctl lock release {name}{option}{force} --yes"),
        ));
    }
    let expect = Expect::Version(lock.version);
    match session
        .store
        .delete(&StoreKeys::new(&name).lock(kind), expect)
        .await
    {
        Ok(()) => session
            .shell
            .print_done(&format!("released the lock of {name}")),
        Err(StoreError::Conflict { .. }) => {
            return Err(CommandError::from_message(
                ErrorKind::Precondition,
                format!("the lock of {name} was renewed or taken over while you looked at it"),
                format!("look again: kctl lock status {name}{option}"),
            ));
        }
        Err(error) => return Err(store_error(error)),
    }
    if alive {
        session.shell.warning("its holder, if it lives, starts nothing more once it tries to renew the lock: wait for a third of its life");
    }
    Ok(Outcome::Fine)
}

fn selected_kind(rolling_update: bool) -> LockKind {
    match rolling_update {
        true => LockKind::RollingUpdate,
        false => LockKind::Changes,
    }
}

/// Reads the cluster's name and its lock. A lock may exist without a cluster: during or after a deletion.
async fn read_lock(
    cluster: Option<&str>,
    kind: LockKind,
    session: &Session<'_>,
) -> Result<(String, Option<ObservedLock>), CommandError> {
    let name = session.cluster_name(cluster).await?;
    let lock = ObservedLock::read(&session.store, &StoreKeys::new(&name), kind).await?;
    if lock.is_none() {
        session.check_cluster_exists(&name).await?;
    }
    Ok((name, lock))
}
