//! `kctl etcd disarm`: disarms the alarm `CORRUPT` of an etcd cluster. protokube compares the data of all members before it does so.

use super::command::{CommandChannel, reporting_members};
use super::reports::EtcdReports;
use crate::args::{EtcdDisarm, ReportFormat};
use crate::commands::document::print_document;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::ui::etcd_members::member_name;
use etcd_rules::{CORRUPT, NO_SPACE, ReportedMember, RunningMember, Verb};
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
}

/// Disarms `CORRUPT`, if it is active.
pub async fn run(args: &EtcdDisarm, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    let (etcd, shell) = (&args.etcd, session.shell);
    let reports = EtcdReports::read(&name, session).await?;
    let members = reporting_members(&reports.members, etcd, &name)?;
    let is_active = has_alarm(&members, CORRUPT);
    if has_alarm(&members, NO_SPACE) {
        let sentence = format!(
            "{etcd}: the alarm {NO_SPACE} is active; protokube ends it by itself once the data leaves room"
        );
        if !is_active {
            return Err(CommandError::from_message(
                ErrorKind::Precondition,
                sentence,
                "make room: docs/operations/full-disk.md",
            ));
        }
        shell.warning(&format!("{sentence}: docs/operations/full-disk.md"));
    }
    if is_active {
        let channel = CommandChannel {
            session,
            name: &name,
            timeout: args.timeout,
        };
        let says = ask_to_disarm(&members, etcd, &channel).await?;
        shell.print_done(&format!("{etcd}: {says}"));
    } else {
        shell.print_done(&format!("{etcd}: no alarm {CORRUPT} is active"));
    }
    let document = DisarmDocument {
        format: 1,
        cluster: &name,
        etcd,
        alarm: CORRUPT,
        disarmed: is_active,
    };
    match args.output {
        ReportFormat::Table => Ok(Outcome::Fine),
        other => {
            print_document(&document, other, session.shell)?;
            Ok(Outcome::Fine)
        }
    }
}

/// Lets protokube compare the data and disarm the alarm. Returns what it says.
async fn ask_to_disarm(
    members: &[&ReportedMember],
    etcd: &str,
    channel: &CommandChannel<'_>,
) -> Result<String, CommandError> {
    let executing = find_executing(members, etcd, channel.name)?;
    let instance = &executing.status.instance;
    channel.session.shell.note(&format!(
        "{etcd}: alarm {CORRUPT}, {}: asking protokube on {instance} to compare the data of all members, and to disarm the alarm if they are the same",
        describe_raised(members)
    ));
    let alarm = CORRUPT.to_owned();
    let executed = channel.execute(executing, Verb::Disarm { alarm }).await;
    executed.map_err(|error| {
        error.with_hint("replace the member that differs: docs/operations/etcd.md#a-corrupt-member; then ask again")
    })
}

fn running<'a>(members: &[&'a ReportedMember]) -> impl Iterator<Item = &'a RunningMember> {
    members.iter().filter_map(|one| one.status.running.as_ref())
}

fn has_alarm(members: &[&ReportedMember], alarm: &str) -> bool {
    running(members).any(|one| one.alarms.iter().any(|active| active == alarm))
}

/// The members for which `CORRUPT` was raised.
fn describe_raised(members: &[&ReportedMember]) -> String {
    let raised: BTreeSet<&str> = running(members)
        .flat_map(|one| one.members_with_alarm(CORRUPT))
        .collect();
    let raised: Vec<&str> = raised.into_iter().collect();
    match raised.as_slice() {
        [] => "and etcd cannot tell which member's data differ".to_owned(),
        raised => format!("raised for {}", raised.join(", ")),
    }
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
