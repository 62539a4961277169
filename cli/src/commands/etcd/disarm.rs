//! `kctl etcd disarm`: disarms an alarm of an etcd cluster once its cause is over. protokube checks that again before it does so.

use super::command::{CommandChannel, reporting_members};
use super::reports::EtcdReports;
use crate::args::{EtcdDisarm, ReportFormat};
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::ui::etcd_members::{DatabaseRow, database_rows, database_table, member_name};
use etcd_rules::{CORRUPT, NO_SPACE, ReportedMember, RunningMember, Verb, why_still_full};
use serde::Serialize;
use std::collections::BTreeSet;

/// The result as JSON or YAML.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DisarmDocument<'a> {
    format: u32,
    cluster: &'a str,
    etcd: &'a str,
    alarm: &'a str,
    /// False if no such alarm was active.
    disarmed: bool,
    /// The databases before.
    members: &'a [DatabaseRow],
}

/// Disarms the alarm that is asked for.
pub async fn run(args: &EtcdDisarm, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    let etcd = &args.etcd;
    let alarm = if args.corrupt { CORRUPT } else { NO_SPACE };
    let reports = EtcdReports::read(&name, session).await?;
    let members = reporting_members(&reports.members, etcd, &name)?;
    let rows = database_rows(&members);
    if args.output == ReportFormat::Table {
        session.shell.print_result(&database_table(&rows))?;
    }
    let is_active = has_alarm(&members, alarm);
    if is_active {
        check_cause(&members, args, &name)?;
        let executing = find_executing(&members, etcd, &name)?;
        let instance = &executing.status.instance;
        session.shell.note(&format!(
            "{etcd}: asking protokube on {instance} to disarm the alarm {alarm}"
        ));
        let channel = CommandChannel {
            session,
            name: &name,
            timeout: args.timeout,
        };
        let verb = Verb::Disarm {
            alarm: alarm.to_owned(),
        };
        let answer = channel.execute(executing, verb).await?;
        session
            .shell
            .print_done(&format!("{etcd}: {}", answer.message));
    } else if has_alarm(&members, CORRUPT) {
        return Err(corrupt_error(&members, args, &name));
    } else {
        session
            .shell
            .print_done(&format!("{etcd}: no alarm {alarm} is active"));
    }
    let document = DisarmDocument {
        format: 1,
        cluster: &name,
        etcd,
        alarm,
        disarmed: is_active,
        members: &rows,
    };
    match args.output {
        ReportFormat::Table => Ok(Outcome::Fine),
        other => super::print_document(&document, other, session),
    }
}

fn running<'a>(members: &[&'a ReportedMember]) -> impl Iterator<Item = &'a RunningMember> {
    members.iter().filter_map(|one| one.status.running.as_ref())
}

fn has_alarm(members: &[&ReportedMember], alarm: &str) -> bool {
    running(members).any(|one| one.alarms.iter().any(|active| active == alarm))
}

/// Refuses while the cause of the alarm lasts, as far as the reports show it. The data of members is compared by protokube.
fn check_cause(
    members: &[&ReportedMember],
    args: &EtcdDisarm,
    name: &str,
) -> Result<(), CommandError> {
    if args.corrupt {
        return Ok(());
    }
    if has_alarm(members, CORRUPT) {
        return Err(corrupt_error(members, args, name));
    }
    let Some(why) = why_still_full(&running(members).collect::<Vec<_>>()) else {
        return Ok(());
    };
    Err(CommandError::from_message(
        ErrorKind::Precondition,
        format!("{}: {why}", args.etcd),
        "delete objects that nobody needs: protokube then compacts, defragments and disarms the alarm by itself",
    )
    .with_hint("or set a larger ETCD_QUOTA_BACKEND_BYTES: docs/operations/full-disk.md"))
}

/// What to do about members whose data differ.
fn corrupt_error(members: &[&ReportedMember], args: &EtcdDisarm, name: &str) -> CommandError {
    let etcd = &args.etcd;
    let raised: BTreeSet<&str> = running(members)
        .flat_map(|one| one.members_with_alarm(CORRUPT))
        .collect();
    let raised: Vec<&str> = raised.into_iter().collect();
    let of = match raised.as_slice() {
        [] => "etcd cannot tell which member's".to_owned(),
        raised => format!("raised for {}", raised.join(", ")),
    };
    CommandError::from_message(
        ErrorKind::Precondition,
        format!("{etcd}: the data of its members differ (alarm {CORRUPT}, {of})"),
        "replace that member first: docs/operations/etcd.md#a-corrupt-member",
    )
    .with_hint(format!(
        "afterwards, `kctl etcd disarm {name} --etcd {etcd} --corrupt` compares the data of all members, and disarms the alarm if they are the same"
    ))
}

/// The leader, or another member that knows one.
fn find_executing<'a>(
    members: &[&'a ReportedMember],
    etcd: &str,
    name: &str,
) -> Result<&'a ReportedMember, CommandError> {
    let able = members
        .iter()
        .filter(|one| matches!(one.role, "leader" | "follower"));
    let first = able.min_by_key(|one| (one.role != "leader", member_name(one)));
    first.copied().ok_or_else(|| {
        CommandError::from_message(
            ErrorKind::Precondition,
            format!("no member of {etcd} knows a leader"),
            format!("see why: `kctl etcd status {name}`"),
        )
    })
}
