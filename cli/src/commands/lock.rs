//! `kctl lock`: who changes a cluster now, and the end of a lock that nobody needs any more.

use super::session::Session;
use crate::args::{LockRelease, LockStatus, ReportFormat};
use crate::error::{CommandError, Context, Kind, Outcome};
use crate::state::{Keys, Seen, Standing, store_error};
use crate::ui::lock as shown;
use aws_client::store::{Expect, StoreError};
use serde::Serialize;
use time::OffsetDateTime;

/// A lock for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
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
    /// When it is free if its holder is dead.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_in_seconds: Option<u64>,
}

impl<'a> Document<'a> {
    fn of(cluster: &'a str, seen: Option<&'a Seen>) -> Self {
        let holder = seen.and_then(|seen| seen.holder.as_ref());
        let standing = seen.map(Seen::standing);
        Self {
            format: 1,
            cluster,
            state: standing.map_or("free", Standing::word),
            who: holder.map(|holder| holder.who.as_str()),
            process: holder.map(|holder| holder.process),
            command: holder.map(|holder| holder.what.as_str()),
            since: holder.map(|holder| holder.since.as_str()),
            renewals: holder.map(|holder| holder.renewed),
            age_seconds: seen.and_then(|seen| seen.age).map(|age| age.as_secs()),
            life_seconds: seen.map(|seen| seen.life().as_secs()),
            expires_in_seconds: match standing {
                Some(Standing::Alive(left)) => left.map(|left| left.as_secs()),
                _ => None,
            },
        }
    }
}

/// `kctl lock status`.
pub async fn status(what: &LockStatus, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let (name, seen) = look(what.cluster.as_deref(), session).await?;
    let document = Document::of(&name, seen.as_ref());
    let text = match what.output {
        ReportFormat::Table => {
            let table = shown::table(&name, seen.as_ref(), OffsetDateTime::now_utc());
            session.shell.result(&table)?;
            return Ok(Outcome::Fine);
        }
        ReportFormat::Json => serde_json::to_string_pretty(&document).failed(
            "the lock has no JSON form",
            "report this: it is a defect of kctl",
        )?,
        ReportFormat::Yaml => node::yaml::to_yaml(&document).failed(
            "the lock has no YAML form",
            "report this: it is a defect of kctl",
        )?,
    };
    session.shell.document(&text)?;
    Ok(Outcome::Fine)
}

/// `kctl lock release`.
pub async fn release(what: &LockRelease, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let (name, seen) = look(what.cluster.as_deref(), session).await?;
    let Some(seen) = seen else {
        session.shell.note(&format!("{name} is not locked"));
        return Ok(Outcome::Fine);
    };
    let now = OffsetDateTime::now_utc();
    session
        .shell
        .result(&shown::table(&name, Some(&seen), now))?;
    let alive = matches!(seen.standing(), Standing::Alive(_));
    if alive && !what.force {
        return Err(CommandError::said(
            Kind::Precondition,
            format!("the lock of {name} is in use"),
            "wait until its holder is done, or until it expires: the next command takes it over then",
        )
        .hint(format!(
            "if you know that its holder is dead: kctl lock release {name} --force --yes"
        )));
    }
    let force = if alive { " --force" } else { "" };
    let question = format!("Release the lock of {name}? Type yes:");
    if !what.yes && !session.shell.confirm(&question, "yes").await {
        return Err(CommandError::said(
            Kind::Usage,
            format!("the lock of {name} was not released"),
            format!("type yes, or: kctl lock release {name}{force} --yes"),
        ));
    }
    let expect = Expect::Version(seen.version);
    match session.store.delete(&Keys::of(&name).lock(), expect).await {
        Ok(()) => session.shell.done(&format!("released the lock of {name}")),
        Err(StoreError::Conflict { .. }) => {
            return Err(CommandError::said(
                Kind::Precondition,
                format!("the lock of {name} was renewed or taken over while you looked at it"),
                format!("look again: kctl lock status {name}"),
            ));
        }
        Err(error) => return Err(store_error(error)),
    }
    if alive {
        session.shell.warning("its holder, if it lives, starts nothing more once it tries to renew the lock: wait for a third of its life");
    }
    Ok(Outcome::Fine)
}

/// The cluster and its lock. A lock without a cluster is there too: somebody deletes or has deleted it.
async fn look(
    cluster: Option<&str>,
    session: &Session<'_>,
) -> Result<(String, Option<Seen>), CommandError> {
    let name = session.cluster(cluster).await?;
    let seen = Seen::read(&session.store, &Keys::of(&name)).await?;
    if seen.is_none() {
        session.existing(&name).await?;
    }
    Ok((name, seen))
}
