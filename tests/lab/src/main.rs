//! `lab`: the lab's command line.

mod commands;

use anyhow::Result;
use clap::{Parser, Subcommand};
use commands::hosts::{self, HostCommand};
use lab::place::Place;
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
    Host(HostCommand),
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let place = Place::named(&arguments.name)?;
    match arguments.command {
        Command::Host(command) => hosts::run(&place, command),
    }
}
