//! `kctl etcd`.

use super::ReportFormat;
use clap::{Args, Subcommand};

/// `kctl etcd`.
#[derive(Debug, Args)]
pub struct Etcd {
    /// What to do.
    #[command(subcommand)]
    pub what: EtcdWhat,
}

/// What `kctl etcd` does.
#[derive(Debug, Subcommand)]
pub enum EtcdWhat {
    /// Show the members of the etcd clusters, also while the API is away
    Status(EtcdStatus),
}

/// `kctl etcd status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl etcd status demo.example.com
  kctl etcd status -o json

Reads only the state store, to which protokube on each control plane reports once a minute and at every change.
Ends with 0 whatever it shows: `kctl validate` checks.")]
pub struct EtcdStatus {
    /// The cluster; instead of --name
    #[arg(value_name = "NAME")]
    pub cluster: Option<String>,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ReportFormat,
}
