//! `kctl etcd status`: what the members of the etcd clusters report in the state store.

use super::reports::EtcdReports;
use crate::args::{EtcdStatus, ReportFormat};
use crate::commands::session::Session;
use crate::error::{CommandError, Outcome};
use crate::ui::etcd as shown;
use serde::Serialize;

/// The members as JSON or YAML.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusDocument<'a> {
    format: u32,
    cluster: &'a str,
    members: &'a [shown::ShownMember],
    problems: &'a [String],
}

/// Shows the members of the etcd clusters.
pub async fn run(args: &EtcdStatus, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    let reports = EtcdReports::read(&name, session).await?;
    let problems = shown::find_problems(&reports.members, &reports.records);
    print(&name, &reports.members, &problems, args.output, session)
}

fn print(
    name: &str,
    members: &[shown::ShownMember],
    problems: &[String],
    output: ReportFormat,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let document = StatusDocument {
        format: 1,
        cluster: name,
        members,
        problems,
    };
    match output {
        ReportFormat::Table => {
            session
                .shell
                .print_result(&shown::members_table(members, problems))?;
            Ok(Outcome::Fine)
        }
        other => super::print_document(&document, other, session),
    }
}
