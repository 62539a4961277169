//! kctl: arguments in, commands run, exit code out. What commands do is in `commands`, what they print goes
//! through `ui`, and everything about clusters themselves is in the crates of `model` and `aws`.

pub mod agents;
pub mod api;
pub mod args;
pub mod clock;
pub mod commands;
pub mod downloads;
pub mod duration;
pub mod env;
pub mod error;
pub mod gather;
pub mod interrupt;
pub mod kubeconfig;
pub mod planned;
pub mod saved_plan;
pub mod state;
pub mod ui;

use args::Cli;
use clap::FromArgMatches;
use error::{CommandError, Context};
use std::process::ExitCode;
use ui::Shell;

/// Runs the process' command line.
pub fn run() -> ExitCode {
    let cli = match args::command()
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches))
    {
        Ok(cli) => cli,
        Err(said) => {
            let Some(error) = args::kops::answer(&said) else {
                return ui::shell::command_line(&said);
            };
            Shell::new(&args::Global::default()).error(&error);
            return ExitCode::from(error.kind.exit_code());
        }
    };
    let shell = Shell::new(&cli.global);
    ui::shell::logging(cli.global.verbose);
    let code = match execute(&cli, &shell) {
        Ok(outcome) => outcome.exit_code(),
        Err(error) => {
            shell.error(&error);
            error.kind.exit_code()
        }
    };
    ExitCode::from(code)
}

fn execute(cli: &Cli, shell: &Shell) -> Result<error::Outcome, CommandError> {
    // One thread: latency is the network's.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.failed(
        "could not start the runtime",
        "free some memory or file descriptors, and try again",
    )?;
    runtime.block_on(commands::run(cli, shell))
}
