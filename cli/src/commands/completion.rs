//! `kctl completion`.

use crate::args::{self, CompletionShell};
use crate::error::{CommandError, Outcome};
use crate::ui::Shell as Terminal;
use clap_complete::{Shell, generate};

/// Prints the completion script of a shell.
pub fn run(shell: CompletionShell, terminal: &Terminal) -> Result<Outcome, CommandError> {
    let shell = match shell {
        CompletionShell::Bash => Shell::Bash,
        CompletionShell::Zsh => Shell::Zsh,
        CompletionShell::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut args::build_command(), "kctl", &mut script);
    terminal.print_document(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Fine)
}
