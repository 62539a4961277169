//! `kctl lock`.

use super::ReportFormat;
use clap::{Args, Subcommand};

/// `kctl lock`.
#[derive(Debug, Args)]
pub struct Lock {
    /// What to do with it.
    #[command(subcommand)]
    pub what: LockWhat,
}

/// What `kctl lock` does.
#[derive(Debug, Subcommand)]
pub enum LockWhat {
    /// Show who holds the lock of a cluster
    Status(LockStatus),
    /// Delete the lock of a kctl that has died
    Release(LockRelease),
}

/// `kctl lock status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl lock status demo.example.com
  kctl lock status -o json

Ends with 0 whether it is free or not.")]
pub struct LockStatus {
    /// The cluster; instead of --name
    #[arg(value_name = "NAME")]
    pub cluster: Option<String>,
    /// The lock of rolling updates instead of the one for changes
    #[arg(long)]
    pub rolling_update: bool,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ReportFormat,
}

/// `kctl lock release`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl lock release demo.example.com --yes           one that has expired, or whose holder has ended
  kctl lock release demo.example.com --force --yes   one that may be in use: its holder starts nothing more

An expired lock is taken over by the next command anyway: this is for those who do not want to wait.")]
pub struct LockRelease {
    /// The cluster; instead of --name
    #[arg(value_name = "NAME")]
    pub cluster: Option<String>,
    /// The lock of rolling updates instead of the one for changes
    #[arg(long)]
    pub rolling_update: bool,
    /// Release it
    #[arg(short, long)]
    pub yes: bool,
    /// Release it even if its holder may be at work
    #[arg(long)]
    pub force: bool,
}
