//! `kctl toolbox`.

use super::ApiReach;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `kctl toolbox`.
#[derive(Debug, Args)]
pub struct Toolbox {
    /// What to do.
    #[command(subcommand)]
    pub what: ToolboxWhat,
}

/// What `kctl toolbox` does.
#[derive(Debug, Subcommand)]
pub enum ToolboxWhat {
    /// Collect what a person needs to find a fault, in an archive without secrets
    Dump(ToolboxDump),
}

/// `kctl toolbox dump`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl toolbox dump demo.example.com                      write demo.example.com-DATE.tar.gz
  kctl toolbox dump demo.example.com --out dump.tar.gz
  kctl toolbox dump demo.example.com --max-nodes 0        without journals of instances

What could not be read is listed in problems.txt of the archive.")]
pub struct ToolboxDump {
    /// The cluster; instead of --name
    #[arg(value_name = "NAME")]
    pub cluster: Option<String>,
    /// The archive; it must not exist [default: NAME-DATE.tar.gz]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Of how many nodes the journal is read: control planes first, then those that are not Ready
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub max_nodes: usize,
    /// How the API is reached.
    #[command(flatten)]
    pub reach: ApiReach,
}
