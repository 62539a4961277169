//! What a rolling update would do, without doing it.

use super::differences::Differences;
use super::watch::View;
use crate::args::{ReportFormat, RollingUpdate};
use crate::commands::document::print_document;
use crate::commands::session::Session;
use crate::error::CommandError;
use crate::ui::rolling_update as shown;
use rolling_update::Obstacle;

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
        return print_document(&preview, args.output, session.shell);
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
