//! `kctl etcd status`: what the members of the etcd clusters report in the state store.

use super::reports::EtcdReports;
use crate::args::{EtcdStatus, ReportFormat};
use crate::commands::document::print_document;
use crate::commands::session::Session;
use crate::error::{CommandError, Outcome};
use crate::ui::etcd::{self as shown, RestorableRow};
use etcd_rules::backup::find_backup_problems;
use etcd_rules::{ReportedMember, find_etcd_problems, find_slow_disks};
use node::etcd_problem::EtcdProblem;
use serde::Serialize;
use time::OffsetDateTime;

/// The members as JSON or YAML.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusDocument<'a> {
    format: u32,
    cluster: &'a str,
    members: &'a [ReportedMember],
    /// As the states of the backups tell it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    restorable: Vec<RestorableRow>,
    problems: Vec<String>,
}

/// Shows the members of the etcd clusters.
pub async fn run(args: &EtcdStatus, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    let reports = EtcdReports::read(&name, session).await?;
    let members = &reports.members;
    let mut problems = find_etcd_problems(members, &reports.records);
    problems.extend(find_backup_problems(
        &reports.backups,
        OffsetDateTime::now_utc(),
    ));
    for slow in find_slow_disks(members) {
        session.shell.warning(&slow);
    }
    let document = StatusDocument {
        format: 1,
        cluster: &name,
        members,
        restorable: reports.told_restorable(),
        problems: problems.iter().map(EtcdProblem::one_line).collect(),
    };
    match args.output {
        ReportFormat::Table => {
            let paint = session.shell.paint();
            let tables = [
                shown::members_table(members, &problems, paint),
                shown::restorable_table(&document.restorable),
            ];
            let filled = tables.iter().filter(|table| !table.is_empty());
            let filled: Vec<&str> = filled.map(String::as_str).collect();
            session.shell.print_result(&filled.join("\n"))?;
            Ok(Outcome::Fine)
        }
        other => {
            print_document(&document, other, session.shell)?;
            Ok(Outcome::Fine)
        }
    }
}
