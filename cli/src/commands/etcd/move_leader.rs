//! `kctl etcd move-leader`: makes another member the leader.

use super::command::{CommandChannel, is_named, reporting_members};
use super::reports::EtcdReports;
use crate::args::{EtcdMoveLeader, ReportFormat};
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::ui::etcd_members::member_name;
use etcd_rules::{ReportedMember, Verb};
use node::duration::duration_text;
use serde::Serialize;

/// The move as JSON or YAML.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct MoveDocument<'a> {
    format: u32,
    cluster: &'a str,
    etcd: &'a str,
    /// The leader before.
    from: &'a str,
    /// The leader now.
    to: &'a str,
}

/// Moves the leadership of an etcd cluster.
pub async fn run(args: &EtcdMoveLeader, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    let reports = EtcdReports::read(&name, session).await?;
    let etcd = &args.etcd;
    let members = reporting_members(&reports.members, etcd, &name)?;
    let leader = find_leader(&members, etcd, &name)?;
    let target = match args.to.as_deref() {
        Some(named) => find_named(&reports.members, leader, named, &name)?,
        None => find_best(&members, leader, &name)?,
    };
    let (from, to) = (member_name(leader), member_name(target));
    if from == to {
        session.shell.print_done(&format!("{to} leads {etcd}"));
    } else {
        let instance = &leader.status.instance;
        session.shell.note(&format!(
            "{etcd}: asking protokube on {instance} to move the leadership from {from} to {to}"
        ));
        let channel = CommandChannel {
            session,
            name: &name,
            timeout: args.timeout,
        };
        let verb = Verb::MoveLeader { to: to.to_owned() };
        let answer = channel.execute(leader, verb).await?;
        session
            .shell
            .print_done(&format!("{etcd}: {}", answer.message));
    }
    let document = MoveDocument {
        format: 1,
        cluster: &name,
        etcd,
        from,
        to,
    };
    match args.output {
        ReportFormat::Table => Ok(Outcome::Fine),
        other => super::print_document(&document, other, session),
    }
}

fn find_leader<'a>(
    members: &[&'a ReportedMember],
    etcd: &str,
    name: &str,
) -> Result<&'a ReportedMember, CommandError> {
    let leaders = members.iter().filter(|one| one.role == "leader");
    // A member that was cut off may still say that it leads, in an older term.
    let newest = leaders.max_by_key(|one| one.status.running.as_ref().map(|one| one.term));
    newest.copied().ok_or_else(|| {
        CommandError::from_message(
            ErrorKind::Precondition,
            format!("no member of {etcd} reports that it leads"),
            format!("see why: `kctl etcd status {name}`"),
        )
    })
}

/// The member that is named. It must be able to lead, because etcd would wait for it in vain.
fn find_named<'a>(
    members: &'a [ReportedMember],
    leader: &'a ReportedMember,
    named: &str,
    name: &str,
) -> Result<&'a ReportedMember, CommandError> {
    let etcd = &leader.status.etcd;
    let own = members.iter().filter(|one| one.status.etcd == *etcd);
    let named_ones = own.filter(|one| is_named(one, named));
    // The report of an instance that was replaced may still be there.
    let found = named_ones.min_by_key(|one| one.age_seconds.unwrap_or(i64::MAX));
    let why = match found {
        None => format!("no instance reports a member {named} of {etcd} that runs"),
        Some(found) => match why_unfit(found) {
            None => return Ok(found),
            Some(_) if found == leader => return Ok(found),
            Some(why) => format!("{} of {etcd} cannot lead: {why}", member_name(found)),
        },
    };
    Err(unfit_error(why, name))
}

/// Why a member cannot lead.
fn why_unfit(member: &ReportedMember) -> Option<String> {
    let instance = &member.status.instance;
    if !member.is_stored_lately() {
        let age = member
            .age_seconds
            .map_or_else(|| "an unknown time".to_owned(), duration_text);
        return Some(format!("{instance} has reported nothing for {age}"));
    }
    if let Some(problem) = &member.status.problem {
        return Some(format!("{instance} reports: {problem}"));
    }
    match member.role {
        "follower" => None,
        "learner" => Some("it is a learner".to_owned()),
        role => Some(format!(
            "it reports the role {role:?} instead of \"follower\""
        )),
    }
}

/// The follower that is best prepared.
fn find_best<'a>(
    members: &[&'a ReportedMember],
    leader: &ReportedMember,
    name: &str,
) -> Result<&'a ReportedMember, CommandError> {
    let ready = members.iter().filter(|one| why_unfit(one).is_none());
    let newest = ready.max_by_key(|one| one.status.running.as_ref().map(|one| one.revision));
    newest.copied().ok_or_else(|| {
        let why = format!("{} has no follower that could lead", leader.status.etcd);
        unfit_error(why, name)
    })
}

fn unfit_error(why: String, name: &str) -> CommandError {
    let see = format!("see the members with `kctl etcd status {name}`");
    CommandError::from_message(ErrorKind::Precondition, why, see)
}
