//! `lab`: the lab's command line.

use clap::Parser;
use lab::place::Place;

/// Machines for what the AWS simulator launches.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Which of several labs
    #[arg(long, env = "KCTL_LAB", default_value = "lab")]
    name: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let place = Place::named(&arguments.name)?;
    std::fs::create_dir_all(place.run())?;
    Ok(())
}
