//! What each command does, without its argv.

mod completion;
mod reference;
mod version;

use crate::args::{Cli, Command};
use crate::error::{CommandError, Outcome};
use crate::ui::Shell;

/// Runs a command.
pub async fn run(cli: &Cli, shell: &Shell) -> Result<Outcome, CommandError> {
    match &cli.command {
        Command::Completion(options) => completion::run(options.shell, shell),
        Command::Reference(options) => reference::run(&options.out, shell),
        Command::Version => version::run(shell),
        _ => Err(CommandError::usage("x", "y")),
    }
}
