//! Follows a recovery or a restore, which protokube carries out, until the new etcd cluster serves.

use super::command::words;
use super::reports::EtcdReports;
use super::stored_record::StoredRecord;
use crate::error::{CommandError, ErrorKind};
use crate::interrupt::Interrupts;
use node::etcd::{FormationRecord, FormationState};
use std::time::Duration;
use tokio::time::Instant;

/// Time between two looks at the record.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Shows what protokube waits for, until the member on the volume of `from` serves as another etcd cluster than that of the record
/// `before`.
pub async fn follow_until_done(
    stored: &StoredRecord<'_>,
    before: &FormationRecord,
    from: &str,
    timeout: Duration,
) -> Result<(), CommandError> {
    let interrupts = Interrupts::default();
    tokio::select! {
        biased;
        done = follow(stored, before, from, timeout) => done,
        () = interrupts.wait_to_leave(|| ()) => Err(CommandError::from_message(
            ErrorKind::Interrupted,
            "interrupted",
            format!("protokube goes on; to see how far it is, repeat the command or use `kctl etcd status {}`", stored.name),
        )),
    }
}

async fn follow(
    stored: &StoredRecord<'_>,
    before: &FormationRecord,
    from: &str,
    timeout: Duration,
) -> Result<(), CommandError> {
    let (shell, etcd) = (stored.session.shell, stored.etcd);
    let begun = Instant::now();
    let mut shown = String::new();
    loop {
        let reports = EtcdReports::read(stored.name, stored.session).await?;
        let record = reports.records.get(etcd);
        let record = record.ok_or_else(|| stored.missing_error())?;
        // A restore may take another volume.
        let known = record
            .members
            .get(from)
            .or_else(|| before.members.get(from));
        let volume = known.map(|member| &member.volume);
        let source = reports
            .members
            .iter()
            .find(|one| one.status.etcd == *etcd && one.status.volume.as_ref() == volume);
        let waits = match &record.state {
            FormationState::Formed { .. } if record.state == before.state => {
                return Err(stored.refuse(
                    "it was called off by somebody else; nothing was changed",
                    "see the members",
                ));
            }
            FormationState::Formed { cluster_id, .. } => {
                let running = source.and_then(|one| one.status.running.as_ref());
                if running.is_some_and(|one| one.cluster_id == *cluster_id && one.leader.is_some())
                {
                    return Ok(());
                }
                format!("restored as etcd cluster {cluster_id}; member {from} starts")
            }
            _ => source
                .and_then(|one| one.status.problem.clone())
                .unwrap_or_else(|| {
                    format!("waiting for protokube on the instance of member {from}")
                }),
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
