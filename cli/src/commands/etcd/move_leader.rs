//! `kctl etcd move-leader`: makes another member the leader.

use super::command::{CommandChannel, is_named, reporting_members};
use super::reports::EtcdReports;
use crate::args::{EtcdMoveLeader, ReportFormat};
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::ui::etcd_members::member_name;
use fleet::ReportedMember;
use node::etcd::Verb;
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
    let target = find_target(&members, leader, args.to.as_deref(), &name)?;
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

/// The member that is named, or the follower that is best prepared.
fn find_target<'a>(
    members: &[&'a ReportedMember],
    leader: &'a ReportedMember,
    named: Option<&str>,
    name: &str,
) -> Result<&'a ReportedMember, CommandError> {
    let see = format!("see the members with `kctl etcd status {name}`");
    let etcd = &leader.status.etcd;
    if let Some(named) = named {
        let found = members.iter().find(|one| is_named(one, named)).copied();
        return found.ok_or_else(|| {
            let message = format!("no instance reports a member {named} of {etcd} that runs");
            CommandError::from_message(ErrorKind::Precondition, message, see)
        });
    }
    let ready = |one: &&&ReportedMember| one.role == "follower" && one.status.problem.is_none();
    let followers = members.iter().filter(ready);
    let newest = followers.max_by_key(|one| one.status.running.as_ref().map(|one| one.revision));
    newest.copied().ok_or_else(|| {
        let message = format!("{etcd} has no follower that could lead");
        CommandError::from_message(ErrorKind::Precondition, message, see)
    })
}
