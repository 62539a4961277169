//! Follows a recovery or a restore, which protokube carries out, until the new etcd cluster serves.

use super::command::words;
use super::formation::Formation;
use super::reports::EtcdReports;
use crate::error::{CommandError, ErrorKind};
use crate::interrupt::Interrupts;
use etcd_rules::{FormationRecord, ReportedMember};
use std::time::Duration;
use tokio::time::Instant;

/// Time between two looks at the record.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followed {
    /// The new etcd cluster serves.
    Serves,
    /// protokube found that the snapshot cannot be used, and has called the restore off: why.
    Refused(String),
}

/// Shows what protokube waits for, until the etcd cluster with this token serves. `from`: the member that begins it, if it is not over yet.
pub async fn follow_until_done(
    stored: &Formation<'_>,
    token: &str,
    from: Option<&str>,
    timeout: Duration,
) -> Result<Followed, CommandError> {
    let interrupts = Interrupts::default();
    tokio::select! {
        biased;
        done = follow(stored, token, from, timeout) => done,
        () = interrupts.wait_to_leave(|| ()) => Err(CommandError::from_message(
            ErrorKind::Interrupted,
            "interrupted",
            format!("protokube goes on; to see how far it is, repeat the command or use `kctl etcd status {}`", stored.name),
        )),
    }
}

async fn follow(
    stored: &Formation<'_>,
    token: &str,
    from: Option<&str>,
    timeout: Duration,
) -> Result<Followed, CommandError> {
    let (shell, etcd) = (stored.session.shell, stored.etcd);
    let begun = Instant::now();
    let mut shown = String::new();
    loop {
        let reports = EtcdReports::read(stored.name, stored.session).await?;
        let record = reports.records.get(etcd);
        let record = record.ok_or_else(|| stored.missing_error())?;
        if let Some(refused) = &record.generation.refused
            && refused.token == token
        {
            return Ok(Followed::Refused(refused.why.clone()));
        }
        if record.newest_token() != token {
            return Err(stored.refuse(
                "somebody else has called it off, or has begun another one",
                "see the members",
            ));
        }
        let waits = match record.formed_id() {
            Some(cluster_id) => {
                // What lost instances reported stays in the store.
                let lately = members(&reports, etcd).filter(|one| one.is_stored_lately());
                let mut running = lately.filter_map(|one| one.status.running.as_ref());
                if running.any(|one| one.cluster_id == cluster_id && one.leader.is_some()) {
                    return Ok(Followed::Serves);
                }
                format!("restored as etcd cluster {cluster_id}, which starts")
            }
            None => describe_wait(&reports, record, etcd, from),
        };
        if waits != shown {
            shell.note(&format!("{etcd}: {waits}"));
            shown = waits;
        }
        if begun.elapsed() > timeout {
            return Err(CommandError::from_message(
                ErrorKind::Failed,
                format!("it is not over after {}: {shown}", words(timeout)),
                "protokube goes on; repeat the command to follow it",
            ));
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

fn members<'a>(
    reports: &'a EtcdReports,
    etcd: &'a str,
) -> impl Iterator<Item = &'a ReportedMember> {
    let all = reports.members.iter();
    all.filter(move |one| one.status.etcd == etcd)
}

/// What the instance says that restores the data.
fn describe_wait(
    reports: &EtcdReports,
    record: &FormationRecord,
    etcd: &str,
    from: Option<&str>,
) -> String {
    let from = from.unwrap_or_default();
    // A restore may take another volume.
    let volume = record.members.get(from).map(|member| &member.volume);
    let source = members(reports, etcd).find(|one| one.status.volume.as_ref() == volume);
    let problem = source.and_then(|one| one.status.problem.clone());
    problem.unwrap_or_else(|| format!("waiting for protokube on the instance of member {from}"))
}
