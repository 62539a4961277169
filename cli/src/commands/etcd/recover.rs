//! `kctl etcd recover`: an etcd cluster that lost more than half of its members begins anew with the data of one member. kctl changes
//! the formation record; protokube does the rest.

use super::command::words;
use super::reports::{EtcdReports, RECORD_LIMIT};
use crate::args::{EtcdRecover, ReportFormat};
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorContext, ErrorKind, Outcome};
use crate::interrupt::Interrupts;
use crate::state::{StoreKeys, store_error};
use crate::ui::etcd_copies::{CopyRow, copies_table, describe_recovery, list_copies, newest_copy};
use aws_client::store::{Expect, StoreError, Version};
use fleet::ReportedMember;
use node::etcd::{
    FormationRecord, FormationState, Recovering, begin_recovery, member_name_matches, record_key,
};
use serde::Serialize;
use std::time::Duration;
use tokio::time::Instant;

/// Time between two looks at the record.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// The copies, and how far the recovery is, as JSON or YAML.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RecoverDocument<'a> {
    format: u32,
    cluster: &'a str,
    etcd: &'a str,
    copies: &'a [CopyRow],
    /// The member with the newest data.
    #[serde(skip_serializing_if = "Option::is_none")]
    newest: Option<&'a str>,
    /// True once the new etcd cluster serves.
    recovered: bool,
}

/// The recovery of one etcd cluster.
struct Recovery<'a> {
    args: &'a EtcdRecover,
    session: &'a Session<'a>,
    name: &'a str,
}

/// Shows the copies of the data, what a recovery would do, or does it.
pub async fn run(args: &EtcdRecover, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    let recovery = Recovery {
        args,
        session,
        name: &name,
    };
    let reports = EtcdReports::read(&name, session).await?;
    let (record, version) = recovery.read_record().await?;
    let copies = list_copies(&reports.members, &record, &args.etcd);
    let text = match &args.from {
        None => recovery.describe_choice(&copies),
        Some(named) => {
            let from = recovery.find_member(&record, named)?;
            let is_running = is_recovering_from(&record, &from);
            let next = (!is_running)
                .then(|| recovery.plan_recovery(&record, &from, &copies, &reports.members))
                .transpose()?;
            match next {
                _ if !args.yes => describe_recovery(&copies, &from, &args.etcd, &name),
                next => {
                    if let Some(next) = next {
                        recovery.write_record(&next, version).await?;
                    }
                    recovery.follow_until_done(&record, &from).await?;
                    recovery.describe_end()
                }
            }
        }
    };
    let document = RecoverDocument {
        format: 1,
        cluster: &name,
        etcd: &args.etcd,
        newest: newest_copy(&copies).map(|copy| copy.member.as_str()),
        copies: &copies,
        recovered: args.yes && args.from.is_some(),
    };
    match args.output {
        ReportFormat::Table => session.shell.print_result(&text)?,
        other => drop(super::print_document(&document, other, session)?),
    }
    Ok(Outcome::Fine)
}

fn is_recovering_from(record: &FormationRecord, member: &str) -> bool {
    matches!(&record.state, FormationState::Recovering(Recovering { from, .. }) if from == member)
}

impl Recovery<'_> {
    async fn read_record(&self) -> Result<(FormationRecord, Version), CommandError> {
        let key = StoreKeys::new(self.name).key_below(&record_key(&self.args.etcd));
        let object = self.session.store.get(&key).await.map_err(store_error)?;
        let object = object.filter(|object| object.bytes.len() < RECORD_LIMIT);
        let object = object.ok_or_else(|| self.missing_record_error())?;
        let record = FormationRecord::parse(&key, &object.bytes).or_failed(
            "the record cannot be read",
            "use the kctl of the cluster's release",
        )?;
        Ok((record, object.version))
    }

    fn missing_record_error(&self) -> CommandError {
        CommandError::from_message(
            ErrorKind::Precondition,
            format!(
                "{} has no record of an etcd cluster {}",
                self.name, self.args.etcd
            ),
            format!(
                "see the etcd clusters with `kctl etcd status {}`",
                self.name
            ),
        )
    }

    async fn write_record(
        &self,
        record: &FormationRecord,
        read: Version,
    ) -> Result<(), CommandError> {
        let key = StoreKeys::new(self.name).key_below(&record_key(&self.args.etcd));
        let (text, expect) = (record.to_json().into_bytes(), Expect::Version(read));
        match self.session.store.put(&key, text, expect).await {
            Ok(_) => Ok(()),
            Err(StoreError::Conflict { .. }) => {
                // A write whose answer was lost was repeated.
                if self.read_record().await?.0.token() == record.token() {
                    return Ok(());
                }
                Err(self.refuse(
                    "the record was changed by somebody else meanwhile; nothing was changed"
                        .to_owned(),
                    "look at the members and ask again",
                ))
            }
            Err(error) => Err(store_error(error)),
        }
    }

    fn refuse(&self, why: String, next: &str) -> CommandError {
        CommandError::from_message(
            ErrorKind::Precondition,
            why,
            format!("{next}: `kctl etcd status {}`", self.name),
        )
    }

    /// The short name of the member that was named: `etcd-b` or `b`.
    fn find_member(&self, record: &FormationRecord, named: &str) -> Result<String, CommandError> {
        let etcd = &self.args.etcd;
        let is_named =
            |member: &&String| *member == named || member_name_matches(etcd, named, member);
        let found = record.members.keys().find(is_named).cloned();
        found.ok_or_else(|| {
            let members: Vec<&str> = record.members.keys().map(String::as_str).collect();
            let members = members.join(", ");
            let why = format!("etcd {etcd} has no member {named}; its members: {members}");
            self.refuse(why, "see the members")
        })
    }

    fn describe_choice(&self, copies: &[CopyRow]) -> String {
        let table = copies_table(copies);
        let (etcd, name) = (&self.args.etcd, self.name);
        match newest_copy(copies) {
            None => format!("{table}\nNo instance reports data of etcd {etcd}.\n"),
            Some(newest) => format!(
                "{table}\nThe newest data is that of member {member}. To see what a recovery from it would do:\n  \
                 kctl etcd recover {name} --etcd {etcd} --from {member}\n",
                member = newest.member
            ),
        }
    }

    /// The record with which the recovery begins, if nothing speaks against it.
    fn plan_recovery(
        &self,
        record: &FormationRecord,
        from: &str,
        copies: &[CopyRow],
        members: &[ReportedMember],
    ) -> Result<FormationRecord, CommandError> {
        let etcd = &self.args.etcd;
        let mut fresh = members
            .iter()
            .filter(|one| one.status.etcd == *etcd && one.is_fresh());
        if let Some(led) = fresh.find(|one| ["leader", "follower"].contains(&one.role)) {
            return Err(self.refuse(
                format!(
                    "etcd {etcd} has a leader, as {} reports: a recovery would give up what only other members have. Lost members of a \
                     cluster with a quorum are replaced without a command",
                    led.status.instance
                ),
                "see the members",
            ));
        }
        let source = copies.iter().find(|copy| copy.member == from);
        let Some(source) = source.filter(|copy| copy.is_usable()) else {
            return Err(self.refuse(
                format!(
                    "no instance reports lately that it holds the data of member {from}, and protokube there would have to restore it"
                ),
                "see which instance has its volume, and what protokube waits for",
            ));
        };
        if source.is_foreign {
            return Err(self.refuse(
                format!(
                    "the etcd that runs on {} is not the one in the record",
                    source.volume
                ),
                "see the ids of the members",
            ));
        }
        if let Some(newest) = newest_copy(copies)
            && newest.revision > source.revision
            && !self.args.force
        {
            return Err(self.refuse(
                format!(
                    "the data of member {} is newer (revision {}) than that of member {from} (revision {}): use --from {}, or --force to \
                     give up the newer data",
                    newest.member,
                    newest.revision.unwrap_or_default(),
                    source.revision.unwrap_or_default(),
                    newest.member
                ),
                "see the members",
            ));
        }
        let mut random = [0; 16];
        getrandom::fill(&mut random).or_failed(
            "could not get random numbers from the system",
            "report this: it is a defect of kctl",
        )?;
        let token = node::digest::to_hex(&random);
        begin_recovery(record, from, &token).map_err(|why| {
            self.refuse(
                format!("etcd {etcd} cannot be recovered from member {from}: {why}"),
                "see the members",
            )
        })
    }

    async fn follow_until_done(
        &self,
        before: &FormationRecord,
        from: &str,
    ) -> Result<(), CommandError> {
        let interrupts = Interrupts::default();
        tokio::select! {
            biased;
            done = self.follow(before, from) => done,
            () = interrupts.wait_to_leave(|| ()) => Err(CommandError::from_message(
                ErrorKind::Interrupted,
                "interrupted",
                format!("protokube goes on with the recovery; to see how far it is, repeat the command or use `kctl etcd status {}`", self.name),
            )),
        }
    }

    async fn follow(&self, before: &FormationRecord, from: &str) -> Result<(), CommandError> {
        let (shell, etcd) = (self.session.shell, &self.args.etcd);
        let begun = Instant::now();
        let mut shown = String::new();
        loop {
            let reports = EtcdReports::read(self.name, self.session).await?;
            let record = reports.records.get(etcd);
            let record = record.ok_or_else(|| self.missing_record_error())?;
            let volume = before.members.get(from).map(|member| &member.volume);
            let source = reports
                .members
                .iter()
                .find(|one| one.status.etcd == *etcd && one.status.volume.as_ref() == volume);
            let waits = match &record.state {
                FormationState::Formed { cluster_id, .. } if record.state != before.state => {
                    let running = source.and_then(|one| one.status.running.as_ref());
                    if running
                        .is_some_and(|one| one.cluster_id == *cluster_id && one.leader.is_some())
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
            if begun.elapsed() > self.args.timeout {
                return Err(CommandError::from_message(
                    ErrorKind::Failed,
                    format!(
                        "the recovery is not over after {}: {shown}",
                        words(self.args.timeout)
                    ),
                    "protokube goes on; repeat the command to follow it",
                ));
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    fn describe_end(&self) -> String {
        let (etcd, name) = (&self.args.etcd, self.name);
        format!(
            "etcd {etcd} serves again. The other members join as new ones:\n  kctl update {name} --yes    creates volumes that were \
             deleted\n  kctl etcd status {name}     shows how far the members are\n"
        )
    }
}
