//! `lab`: the lab's command line.

use clap::{Parser, Subcommand};
use lab::network::commands::{PartitionArguments, network, partition};
use lab::place::Place;
use std::io::Write;

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
    /// Show hosts, load balancers and faults
    Network,
    Partition(PartitionArguments),
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let place = Place::named(&arguments.name)?;
    std::fs::create_dir_all(place.run())?;
    let text = match &arguments.command {
        Command::Network => network(&place)?,
        Command::Partition(arguments) => partition(&place, arguments)?,
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
