//! `kctl preflight --live`: pods on some nodes try the connections that the cluster needs. What is made for that is in a namespace of its
//! own, which is deleted in the end, whatever the end is.

mod members;
mod namespace;
mod plan;
mod pods;
mod rows;
mod run;

use super::{CONNECTIONS, Inputs};
use crate::api::{ApiQuery, list_nodes};
use crate::args::ApiReach;
use crate::commands::inspect::Inspector;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorKind};
use crate::ui::preflight::PreflightRow;
use members::{Choice, choose_members};
use namespace::in_own_namespace;
use rows::rows_of_trials;
use run::try_connections;

/// What rows are about that are about no node.
const RUNNING_NODES: &str = "running nodes";

/// `ports`: the rows of what AWS has, which say why a connection may fail.
pub(super) async fn check(
    inputs: &Inputs<'_>,
    ports: &[PreflightRow],
    reach: &ApiReach,
    session: &Session<'_>,
) -> Result<Vec<PreflightRow>, CommandError> {
    let full = inputs.full();
    let not_known = |why: String| vec![PreflightRow::not_known(CONNECTIONS, RUNNING_NODES, why)];
    let mut inspector = Inspector::open(&full.name, ApiQuery::Nodes, reach, session).await?;
    let client = match inspector.connect().await {
        Ok(client) => client,
        Err(error) if error.kind == ErrorKind::Usage => return Err(error),
        Err(error) => return Ok(not_known(error.cause_text())),
    };
    let nodes = match list_nodes(&client).await {
        Ok(nodes) => nodes,
        Err(error) => return Ok(not_known(inspector.explain(&error).cause_text())),
    };
    let choice = choose_members(full, &nodes);
    let mut rows = rows_of_choice(&choice);
    if choice.members.is_empty() {
        rows.extend(not_known(
            "there is no Ready node to try them from".to_owned(),
        ));
        return Ok(rows);
    }
    let members = &choice.members;
    let tried = in_own_namespace(&client, session.shell, async |namespace| {
        session.shell.note(&format!(
            "trying connections between {} of {} nodes, in namespace {namespace}: it takes a minute or two",
            members.len(),
            choice.of
        ));
        try_connections(&client, namespace, full, members).await
    });
    match Box::pin(tried).await? {
        Ok(findings) => rows.extend(rows_of_trials(members, &findings, ports)),
        Err(why) => rows.extend(not_known(why)),
    }
    Ok(rows)
}

/// The rows of nodes that do not take part.
fn rows_of_choice(choice: &Choice) -> Vec<PreflightRow> {
    let unusable = choice.unusable.iter();
    let mut rows: Vec<PreflightRow> = unusable
        .map(|(node, why)| PreflightRow::not_known(CONNECTIONS, node, why))
        .collect();
    let left = choice.of - choice.members.len() - choice.unusable.len();
    if left > 0 {
        rows.push(PreflightRow::not_known(
            CONNECTIONS,
            format!("{left} of {} nodes", choice.of),
            "they take no part: few nodes of each instance group and zone do",
        ));
    }
    rows
}
