//! kctl's command line: `args` parses it, `commands` runs it, `ui` prints. The logic of clusters is in the crates of `model`
//! and `aws`.

pub mod agents;
pub mod api;
pub mod args;
pub mod bundle;
pub mod clock;
pub mod commands;
pub mod delegation;
pub mod downloads;
pub mod duration;
pub mod env;
pub mod error;
pub mod fetch;
pub mod gather;
pub mod interrupt;
pub mod kubeconfig;
pub mod moment;
pub mod plan_target;
pub mod private_file;
pub mod registry;
pub mod saved_plan;
pub mod state;
pub mod ui;

use args::{Cli, Command};
use aws_client::fips;
use clap::FromArgMatches;
use error::{CommandError, ErrorContext, ErrorKind};
use std::process::ExitCode;
use ui::Shell;

/// Runs the process' command line.
pub fn run() -> ExitCode {
    let cli = match args::build_command()
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches))
    {
        Ok(cli) => cli,
        Err(error) => {
            let Some(error) = args::kops::explain_kops_word(&error) else {
                return ui::shell::print_clap_message(&error);
            };
            Shell::new(&args::GlobalOptions::default()).error(&error);
            return ExitCode::from(error.kind.exit_code());
        }
    };
    let shell = Shell::new(&cli.global);
    ui::shell::init_logging(cli.global.verbose);
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
    if !matches!(cli.command, Command::Version(_)) {
        const HINT: &str = "`kctl version` says whether the module runs";
        fips::check_start()
            .map_err(|error| CommandError::new(ErrorKind::Precondition, error, HINT))?;
    }
    // One thread is enough: the time goes to the network.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.or_failed(
        "could not start the runtime",
        "free some memory or file descriptors, and try again",
    )?;
    runtime.block_on(commands::run(cli, shell))
}
