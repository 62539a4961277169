//! `kctl get operations`: the log of what was done to a cluster.

use crate::args::{GetOperations, ListFormat};
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorContext};
use crate::state::{ListedOperation, OperationLog, StoreKeys};
use crate::ui::operations as shown;
use node::yaml;
use serde::Serialize;
use spec::read::nearest;

const DEFECT: &str = "report this: it is a defect of kctl";

/// Shows the newest operations of a cluster, or one with its steps.
pub async fn run(args: &GetOperations, session: &Session<'_>) -> Result<(), CommandError> {
    let name = session.cluster_name(None).await?;
    let keys = StoreKeys::new(&name);
    let log = OperationLog::list(&session.store, &keys).await?;
    if log.ids().is_empty() {
        session.check_cluster_exists(&name).await?;
    }
    if let Some(prefix) = &args.id {
        return show_operation(prefix, &name, &log, args.output, session).await;
    }
    let newest: Vec<String> = log.ids().iter().take(args.limit).cloned().collect();
    if args.output == ListFormat::Name {
        let names = newest.iter().map(|id| format!("operation/{id}\n"));
        return session.shell.print_result(&names.collect::<String>());
    }
    let listed = log.read(&newest).await?;
    match args.output {
        ListFormat::Json | ListFormat::Yaml => {
            let all: Vec<_> = listed.iter().map(shown::operation_json).collect();
            print_records(&all, args.output, session)?;
        }
        _ if listed.is_empty() => {
            session
                .shell
                .note(&format!("nothing was done to {name} yet"));
        }
        form => session
            .shell
            .print_result(&shown::operation_table(&listed, form == ListFormat::Wide))?,
    }
    let more = log.ids().len() - newest.len();
    if more > 0 {
        let hint = format!(
            "{more} older ones are not shown: kctl get operations --limit {}",
            log.ids().len()
        );
        session.shell.hint(&hint);
    }
    Ok(())
}

/// One operation, by its id or the beginning of it.
async fn show_operation(
    prefix: &str,
    cluster: &str,
    log: &OperationLog<'_>,
    form: ListFormat,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let id = find_operation_id(prefix, cluster, log.ids())?;
    if form == ListFormat::Name {
        return session.shell.print_result(&format!("operation/{id}"));
    }
    let found: Option<ListedOperation> = log.read(std::slice::from_ref(&id)).await?.pop();
    let Some(found) = found else { return Ok(()) };
    if matches!(form, ListFormat::Json | ListFormat::Yaml) {
        return print_records(&shown::operation_json(&found), form, session);
    }
    session.shell.print_result(&shown::operation_detail(&found))
}

fn find_operation_id(prefix: &str, cluster: &str, ids: &[String]) -> Result<String, CommandError> {
    let mut matching = ids.iter().filter(|id| id.starts_with(prefix));
    match (matching.next(), matching.next()) {
        (Some(only), None) => Ok(only.clone()),
        (Some(_), Some(_)) => {
            let all: Vec<&str> = ids
                .iter()
                .map(String::as_str)
                .filter(|id| id.starts_with(prefix))
                .collect();
            // An id may be the beginning of no other, but a time may be that of several.
            Err(CommandError::usage_error(
                format!(
                    "{} operations of {cluster} begin with {prefix}: {}",
                    all.len(),
                    all.join(", ")
                ),
                "give more of its ID",
            ))
        }
        (None, _) => {
            let known: Vec<&str> = ids.iter().map(String::as_str).collect();
            // IDs are times; names of clusters have dots.
            let hint = match prefix.contains('.') {
                true => "the cluster is named with --name".to_owned(),
                false => nearest::hint(prefix, &known),
            };
            Err(CommandError::usage_error(
                format!("{cluster} has no operation {prefix}"),
                hint,
            ))
        }
    }
}

fn print_records<T: Serialize>(
    value: &T,
    form: ListFormat,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let text = match form {
        ListFormat::Json => serde_json::to_string_pretty(value)
            .or_failed("the operations have no JSON form", DEFECT)?,
        _ => yaml::to_yaml(value).or_failed("the operations have no YAML form", DEFECT)?,
    };
    session.shell.print_document(&text)
}
