//! `kctl etcd members`: the members of the etcd clusters, as etcd lists them.

use super::reports::EtcdReports;
use crate::args::{EtcdMembers, ReportFormat};
use crate::commands::document::print_document;
use crate::commands::session::Session;
use crate::error::{CommandError, Outcome};
use crate::ui::etcd_members::{ListedRow, list_members, listing_gaps, members_list};
use serde::Serialize;

/// The members as JSON or YAML.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct MembersDocument<'a> {
    format: u32,
    cluster: &'a str,
    members: &'a [ListedRow],
}

/// Lists the members.
pub async fn run(args: &EtcdMembers, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    let reports = EtcdReports::read(&name, session).await?;
    for gap in listing_gaps(&reports.members) {
        session.shell.warning(&gap);
    }
    let members = list_members(&reports.members);
    let document = MembersDocument {
        format: 1,
        cluster: &name,
        members: &members,
    };
    match args.output {
        ReportFormat::Table => {
            session.shell.print_result(&members_list(&members))?;
            Ok(Outcome::Fine)
        }
        other => {
            print_document(&document, other, session.shell)?;
            Ok(Outcome::Fine)
        }
    }
}
