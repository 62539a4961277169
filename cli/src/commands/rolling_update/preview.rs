//! What a rolling update would do, without doing it.

use super::differences::Differences;
use super::watch::View;
use crate::args::{ReportFormat, RollingUpdate};
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorContext};
use crate::ui::rolling_update as shown;
use node::yaml;
use rolling_update::Obstacle;
use serde::Serialize;

/// Prints which instances would be replaced and why, and what would stop it.
pub fn print(
    name: &str,
    args: &RollingUpdate,
    view: &View,
    obstacles: &[Obstacle],
    differences: &Differences,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let preview = shown::Preview::new(&view.observed, &view.fleet, obstacles, differences);
    if args.output != ReportFormat::Table {
        return print_document(&preview, args.output, session);
    }
    session
        .shell
        .print_result(&shown::render(&preview, session.shell.paint()))?;
    if preview.instances.is_empty() {
        session
            .shell
            .print_done(&format!("every instance of {name} is up to date"));
        return Ok(());
    }
    print_obstacles(obstacles, session);
    let command = match &args.instance {
        None => format!("kctl rolling-update {name} --yes"),
        Some(instance) => format!("kctl delete instance {instance} --name {name} --yes"),
    };
    session.shell.hint(&format!(
        "{command}    replaces {}",
        match preview.instances.len() {
            1 => "it".to_owned(),
            several => format!("these {several} instances"),
        }
    ));
    Ok(())
}

/// Prints what would stop a rolling update, and what it would lose.
pub fn print_obstacles(obstacles: &[Obstacle], session: &Session<'_>) {
    for obstacle in obstacles {
        session.shell.warning(&obstacle.text);
    }
}

/// Prints a document for programs.
pub fn print_document(
    document: &impl Serialize,
    format: ReportFormat,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    const BROKEN: &str = "the rolling update has no form for programs";
    const DEFECT: &str = "report this: it is a defect of kctl";
    let text = match format {
        ReportFormat::Yaml => yaml::to_yaml(document).or_failed(BROKEN, DEFECT)?,
        ReportFormat::Json | ReportFormat::Table => {
            serde_json::to_string_pretty(document).or_failed(BROKEN, DEFECT)?
        }
    };
    session.shell.print_document(&text)
}
