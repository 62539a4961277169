//! The machine's own programs, run to their end.

use anyhow::{Context, Result, bail};
use std::process::{Command, Output};

/// What it printed; an error says the whole command line and what the program said.
pub fn run(command: &mut Command) -> Result<String> {
    let output = run_tool(command)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{} ended with {}: {}",
            shown_command(command),
            output.status,
            said.trim()
        );
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("{} printed no UTF-8", shown_command(command)))
}

/// Output and exit code, whatever the code.
pub fn run_tool(command: &mut Command) -> Result<Output> {
    command
        .output()
        .with_context(|| format!("starting {} (is it installed?)", shown_command(command)))
}

fn shown_command(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy()];
    words.extend(command.get_args().map(|word| word.to_string_lossy()));
    words.join(" ")
}
