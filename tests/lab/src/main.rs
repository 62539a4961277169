//! `lab`: the lab's command line.

mod commands;

use anyhow::Result;
use clap::{Parser, Subcommand};
use commands::hosts::{self, HostCommand};
use commands::lab::{self as whole, LabCommand};
use lab::content::command::Content;
use lab::daemon;
use lab::host;
use lab::lab_paths::LabPaths;
use lab::network::commands::{PartitionArguments, change_partition, describe_network};
use lab::services::ca::Ca;
use std::io::{Write, stderr, stdout};
use std::process::ExitCode;

/// Machines for what the AWS simulator launches.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Which of several labs
    #[arg(long, env = "KCTL_LAB", default_value = "lab", global = true)]
    name: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Lab(LabCommand),
    #[command(flatten)]
    Host(HostCommand),
    Content(Content),
    /// Show hosts, load balancers and faults
    Network,
    Partition(PartitionArguments),
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let place = LabPaths::from_name(&arguments.name)?;
    let text = match arguments.command {
        Command::Lab(command) => return whole::run(&place, command),
        Command::Host(command) => return hosts::run(&place, command),
        Command::Content(content) => {
            let authority = Ca::open(&daemon::authority_folder()?)?;
            let trusted = Some(authority.certificate_pem().to_owned());
            content.run(
                &host::cache_folder()?,
                trusted,
                &mut stdout(),
                &mut stderr(),
            )?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Network => describe_network(&place)?,
        Command::Partition(arguments) => change_partition(&place, &arguments)?,
    };
    stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
