//! `kctl etcd recover`: an etcd cluster that lost more than half of its members begins anew with the data of one member. kctl changes
//! the formation record; protokube does the rest.

use super::follow::follow_until_done;
use super::formation::{Formation, new_token};
use super::reports::EtcdReports;
use super::restore::call_off;
use crate::args::{EtcdRecover, ReportFormat};
use crate::commands::document::print_document;
use crate::commands::existing_cluster::ExistingCluster;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::ui::etcd_copies::{
    CopyRow, copies_table, describe_recovery, list_copies, newest_copy, newest_usable_copy,
};
use aws_cloud::is_volume_deleted;
use etcd_rules::{
    FormationRecord, NextGeneration, RecoveryTerms, begin_recovery, can_bump_revisions,
};
use serde::Serialize;

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
    let stored = Formation {
        session,
        name: &name,
        etcd: &args.etcd,
    };
    let (record, read) = stored.read().await?;
    if args.call_off {
        return call_off(&stored, &record, &read, "recovery").await;
    }
    let copies = list_copies(&reports.members, &record, &args.etcd);
    let text = match &args.from {
        None => recovery.describe_choice(&copies),
        Some(named) => {
            let from = stored.find_member(&record, named)?;
            let next = match recovering_from(&record, &from) {
                Some(running) if running.is_forced() || !args.force => None,
                Some(running) => Some(recovery.begin(&record, &from, &running.token, &copies)?),
                None => {
                    recovery.check_quorum(&record, &copies)?;
                    recovery.check_source(&from, &copies)?;
                    recovery.check_others(&record, &from, &copies).await?;
                    let token = new_token()?;
                    Some(recovery.begin(&record, &from, &token, &copies)?)
                }
            };
            match next {
                _ if !args.yes => describe_recovery(&copies, &from, &args.etcd, &name),
                next => {
                    let token = next.as_ref().unwrap_or(&record).newest_token().to_owned();
                    if let Some(next) = next {
                        stored.write(&next, &read).await?;
                    }
                    follow_until_done(&stored, &token, Some(&from), args.timeout).await?;
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
        other => print_document(&document, other, session.shell)?,
    }
    Ok(Outcome::Fine)
}

fn recovering_from<'a>(record: &'a FormationRecord, member: &str) -> Option<&'a NextGeneration> {
    record.next.as_ref().filter(|next| next.from == member)
}

fn revision_of(member: &str, copies: &[CopyRow]) -> Option<u64> {
    let own = copies.iter().find(|copy| copy.member == member);
    own.and_then(|copy| copy.revision)
}

impl Recovery<'_> {
    fn refuse(&self, why: String, next: &str) -> CommandError {
        CommandError::from_message(
            ErrorKind::Precondition,
            why,
            format!("{next}: `kctl etcd status {}`", self.name),
        )
    }

    fn describe_choice(&self, copies: &[CopyRow]) -> String {
        let table = copies_table(copies);
        let (etcd, name) = (&self.args.etcd, self.name);
        let newest = newest_copy(copies);
        let ahead = |usable: &CopyRow| newest.filter(|newest| newest.revision > usable.revision);
        match newest_usable_copy(copies) {
            None => format!("{table}\nNo instance reports data of etcd {etcd}.\n"),
            Some(usable) => {
                let ahead = ahead(usable).map_or_else(String::new, |newest| {
                    format!(
                        "The data of member {} on {} is newer, but no instance has reported it lately: bring it back first. ",
                        newest.member, newest.volume
                    )
                });
                format!(
                    "{table}\n{ahead}The newest data is that of member {member}. To see what a recovery from it would do:\n  \
                     kctl etcd recover {name} --etcd {etcd} --from {member}\n",
                    member = usable.member
                )
            }
        }
    }

    /// A cluster that has a quorum, or will have one as soon as its members reach each other, is not given up.
    fn check_quorum(
        &self,
        record: &FormationRecord,
        copies: &[CopyRow],
    ) -> Result<(), CommandError> {
        let etcd = &self.args.etcd;
        let led = copies
            .iter()
            .find(|copy| copy.may_vote() && copy.role != "no leader");
        if let Some(led) = led {
            return Err(self.refuse(
                format!(
                    "etcd {etcd} has a leader, as {} reports: a recovery would give up what only other members have. Lost members of a \
                     cluster with a quorum are replaced without a command",
                    led.instance.as_deref().unwrap_or(&led.member)
                ),
                "see the members",
            ));
        }
        let alive: Vec<&str> = copies
            .iter()
            .filter(|copy| copy.may_vote())
            .map(|copy| copy.member.as_str())
            .collect();
        if alive.len() > record.data_members() / 2 && !self.args.force {
            return Err(self.refuse(
                format!(
                    "members {} of etcd {etcd} run, which is a quorum: they elect a leader once they reach each other. Wait; if they do not, \
                     look at the network between them (ports 2380 and 2381), and at their clocks and disks. --force gives up the cluster \
                     nevertheless",
                    alive.join(", ")
                ),
                "see the members",
            ));
        }
        Ok(())
    }

    /// The member must be able to restore its data.
    fn check_source(&self, from: &str, copies: &[CopyRow]) -> Result<(), CommandError> {
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
        let version = source
            .version
            .as_deref()
            .filter(|version| !version.is_empty());
        if let Some(old) = version.filter(|version| !can_bump_revisions(version)) {
            return Err(self.refuse(
                format!(
                    "member {from} runs etcd {old}, and etcdutl before 3.5.10 cannot restore data with higher revisions: set \
                     spec.etcdClusters[].version to 3.5.10 or newer, update, and replace the instance of member {from}"
                ),
                "see the versions of the members (-o yaml)",
            ));
        }
        Ok(())
    }

    /// Nothing that another member has, or may have, is given up without force.
    async fn check_others(
        &self,
        record: &FormationRecord,
        from: &str,
        copies: &[CopyRow],
    ) -> Result<(), CommandError> {
        if self.args.force {
            return Ok(());
        }
        let revision = revision_of(from, copies);
        let words = |revision: Option<u64>| {
            revision.map_or("unknown".to_owned(), |revision| revision.to_string())
        };
        if let Some(newest) = newest_copy(copies)
            && newest.revision > revision
        {
            return Err(self.refuse(
                format!(
                    "the data of member {} is newer (revision {}) than that of member {from} (revision {}): use --from {}, or --force to \
                     give up the newer data",
                    newest.member,
                    words(newest.revision),
                    words(revision),
                    newest.member
                ),
                "see the members",
            ));
        }
        // protokube compares the logs of members that have stopped.
        let stopped = record.next.as_ref().map(|next| &next.stopped);
        let is_known = |member: &String| {
            stopped.is_some_and(|stopped| stopped.get(member).is_some_and(Option::is_some))
        };
        for copy in copies.iter().filter(|copy| copy.member != from) {
            if copy.revision.is_some() || is_known(&copy.member) {
                continue;
            }
            let why = match self.is_deleted(&copy.volume).await {
                Ok(true) => continue,
                Ok(false) => "which exists".to_owned(),
                Err(error) => format!("and EC2 could not be asked whether it exists ({error})"),
            };
            return Err(self.refuse(
                format!(
                    "nothing is known of the data of member {} on {}, {why}: it may be newer. Its instance reports it within \
                     minutes of its launch, unless `kctl etcd status` says what is wrong with the volume. To give its data up, use --force",
                    copy.member, copy.volume
                ),
                "see the members",
            ));
        }
        Ok(())
    }

    /// Whether EC2 says that a volume does not exist.
    async fn is_deleted(&self, volume: &str) -> Result<bool, String> {
        let cluster = ExistingCluster::read(self.name, self.session).await;
        let unreadable = |error: CommandError| match error.cause {
            Some(cause) => format!("{cause:#}"),
            None => "the spec of the cluster has problems".to_owned(),
        };
        let clients = cluster.map_err(unreadable)?.clients;
        let deleted = is_volume_deleted(&clients, volume).await;
        deleted.map_err(|failure| failure.to_string())
    }

    /// The record with which the recovery begins, goes on from another member, or goes on by force.
    fn begin(
        &self,
        record: &FormationRecord,
        from: &str,
        token: &str,
        copies: &[CopyRow],
    ) -> Result<FormationRecord, CommandError> {
        let terms = RecoveryTerms {
            revision: revision_of(from, copies).filter(|_| !self.args.force),
            force: self.args.force,
        };
        begin_recovery(record, from, token, terms).map_err(|why| {
            let etcd = &self.args.etcd;
            self.refuse(
                format!("etcd {etcd} cannot be recovered from member {from}: {why}"),
                "see the members",
            )
        })
    }

    fn describe_end(&self) -> String {
        let (etcd, name) = (&self.args.etcd, self.name);
        format!(
            "etcd {etcd} serves again. The other members join as new ones:\n  kctl update {name} --yes    creates volumes that were \
             deleted\n  kctl etcd status {name}     shows how far the members are\n"
        )
    }
}
