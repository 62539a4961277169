//! Removes members from etcd that the spec has no longer, before anything else is changed: kctl asks for it in the formation record,
//! and protokube does it, one member at a time. An update that was interrupted goes on where it was.

use super::etcd_members::{formation, read_formation_record};
use crate::commands::etcd::EtcdReports;
use crate::commands::observe::ObservedCluster;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorKind};
use crate::interrupt::Interrupts;
use crate::state::ClusterLock;
use crate::ui::member_change::{MemberAction, MemberChange};
use etcd_rules::{FormationRecord, ReportedMember, set_leaving};
use node::duration::duration_text;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// Time between two looks at the records.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// How long the removal of all members may take. protokube goes on afterwards, and the next update waits for it again.
const REMOVAL_TIME: Duration = Duration::from_mins(15);

/// The members that leave or come back, by the record and the spec's members.
pub fn find_changes(
    etcd: &str,
    record: &FormationRecord,
    wanted: &BTreeSet<String>,
) -> Vec<MemberChange> {
    let change = |member: &String, action| MemberChange {
        etcd: etcd.to_owned(),
        member: member.clone(),
        action,
        volume: record.members.get(member).map(|one| one.volume.clone()),
    };
    let leaves = record
        .members
        .keys()
        .filter(|member| !wanted.contains(*member));
    let leaves = leaves.map(|member| change(member, MemberAction::Remove));
    let back = record
        .leaving
        .iter()
        .filter(|(member, _)| wanted.contains(*member));
    let back = back.map(|(member, leaving)| {
        let keeps = record.members.contains_key(member) && !leaving.begun;
        change(
            member,
            if keeps {
                MemberAction::Keep
            } else {
                MemberAction::Add
            },
        )
    });
    leaves.chain(back).collect()
}

/// Fails if members leave that the others cannot do without, as far as they report.
pub async fn check_quorum(
    changes: &[MemberChange],
    records: &[(String, FormationRecord)],
    name: &str,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let is_removed = |change: &&MemberChange| change.action == MemberAction::Remove;
    let removed: Vec<&MemberChange> = changes.iter().filter(is_removed).collect();
    if removed.is_empty() {
        return Ok(());
    }
    let reports = EtcdReports::find(name, session).await?.unwrap_or_default();
    for (etcd, record) in records {
        let leaves = |member: &str| {
            let mut removed = removed.iter();
            removed.any(|one| one.etcd == *etcd && one.member == member)
        };
        if !record.members.keys().any(|member| leaves(member)) {
            continue;
        }
        let volumes = record.members.iter().filter(|(member, _)| !leaves(member));
        let volumes: BTreeSet<&String> = volumes.map(|(_, one)| &one.volume).collect();
        let serves = |one: &&ReportedMember| one.is_stored_lately() && one.votes();
        let own = reports
            .members
            .iter()
            .filter(|one| one.status.etcd == *etcd);
        let well: Vec<&ReportedMember> = own.filter(serves).collect();
        let stays = |one: &&ReportedMember| {
            one.status
                .volume
                .as_ref()
                .is_some_and(|volume| volumes.contains(volume))
        };
        let why = if well.is_empty() {
            "no member has reported lately that it sees a leader, and without a quorum none can be removed"
        } else if !well.iter().any(stays) {
            "none of the members that stay has reported lately that it is well"
        } else {
            continue;
        };
        return Err(CommandError::from_message(
            ErrorKind::Precondition,
            format!("no member of etcd {etcd} is removed: {why}"),
            format!("see the members with `kctl etcd status {name}`"),
        ));
    }
    Ok(())
}

/// Asks for the changes, and waits until protokube has made them.
pub async fn carry_out(
    changes: &[MemberChange],
    observed: &ObservedCluster,
    session: &Session<'_>,
    (lock, interrupts): (&ClusterLock, &Interrupts),
) -> Result<(), CommandError> {
    if changes.is_empty() {
        return Ok(());
    }
    let shell = session.shell;
    let begun = Instant::now();
    let mut shown = String::new();
    // From now on an interrupt ends the wait; what has begun goes on without kctl.
    interrupts.start_applying();
    loop {
        let mut waits = Vec::new();
        for etcd in &observed.expanded.full.etcd {
            if changes.iter().any(|change| change.etcd == etcd.name) {
                let wanted = etcd.members.iter().map(|one| one.name.clone()).collect();
                let record = ask_to_leave(&etcd.name, &wanted, observed, session).await?;
                waits.extend(describe_pending(&etcd.name, &record, &wanted));
            }
        }
        if waits.is_empty() {
            return Ok(());
        }
        let words = waits.join("; ");
        if words != shown {
            shell.note(&words);
            shown = words;
        }
        let name = &observed.target.cluster;
        if interrupts.is_stopping() || lock.is_lost() {
            return Err(CommandError::from_message(
                ErrorKind::Interrupted,
                "interrupted while members of etcd were being removed; nothing else was changed",
                format!(
                    "protokube goes on with those that have begun; `kctl update {name} --yes` goes on with the rest"
                ),
            ));
        }
        if begun.elapsed() > REMOVAL_TIME {
            let time = duration_text(i64::try_from(REMOVAL_TIME.as_secs()).unwrap_or(i64::MAX));
            return Err(CommandError::from_message(
                ErrorKind::Failed,
                format!(
                    "members of etcd were not removed within {time}, so nothing else was changed: {shown}"
                ),
                format!(
                    "see what protokube waits for with `kctl etcd status {name}`, and repeat the command"
                ),
            ));
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// Writes into the record which members leave, if it does not say so yet. Returns the record.
async fn ask_to_leave(
    etcd: &str,
    wanted: &BTreeSet<String>,
    observed: &ObservedCluster,
    session: &Session<'_>,
) -> Result<FormationRecord, CommandError> {
    loop {
        let Some((record, read)) = read_formation_record(etcd, observed, session).await? else {
            return Err(CommandError::from_message(
                ErrorKind::Precondition,
                format!("the record of etcd {etcd} is gone"),
                "restore it from the bucket's versions",
            ));
        };
        let next = set_leaving(&record, wanted).map_err(|why| {
            CommandError::from_message(
                ErrorKind::Precondition,
                format!("no member of etcd {etcd} is removed: {why}"),
                format!(
                    "see the members with `kctl etcd status {}`",
                    observed.target.cluster
                ),
            )
        })?;
        let Some(next) = next else {
            return Ok(record);
        };
        let formation = formation(etcd, observed, session);
        if formation.try_write(&next, &read).await? {
            return Ok(next);
        }
        // protokube wrote it meanwhile.
    }
}

/// What is not done yet, in words.
fn describe_pending(
    etcd: &str,
    record: &FormationRecord,
    wanted: &BTreeSet<String>,
) -> Vec<String> {
    let pending = record.pending_removals();
    let pending = pending.map(|(member, leaving)| {
        let what = match leaving.begun {
            true => "is being removed",
            false => "waits to be removed",
        };
        let then = match wanted.contains(member) {
            true => ", and joins again afterwards",
            false => "",
        };
        format!("member {member} of etcd {etcd} {what}{then}")
    });
    pending.collect()
}
