//! `lab`: the lab's command line.

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use lab::content::command::Content;
use lab::place::Place;
use std::path::PathBuf;

/// Machines for what the AWS simulator launches.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Which of several labs
    #[arg(long, env = "KCTL_LAB", default_value = "lab")]
    name: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Content(Content),
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let _place = Place::named(&arguments.name)?;
    match arguments.command {
        Command::Content(content) => {
            content.run(&cache()?, &mut std::io::stdout(), &mut std::io::stderr())
        }
    }
}

/// The lab's part of kctl's cache: `KCTL_CACHE`, else `XDG_CACHE_HOME/kctl`, else `~/.cache/kctl`; below it `lab`.
fn cache() -> Result<PathBuf> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let cache = set("KCTL_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("kctl")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/kctl")))
        .context("no place for what is built: set KCTL_CACHE, XDG_CACHE_HOME or HOME")?;
    Ok(cache.join("lab"))
}
