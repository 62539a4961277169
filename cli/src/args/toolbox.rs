//! `kctl toolbox`.

use super::{ApiReach, ReportFormat};
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
    /// Show how a running cluster stands to each control of the CIS Kubernetes Benchmark
    Cis(ToolboxCis),
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

/// `kctl toolbox cis`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl toolbox cis demo.example.com                    every control: pass, FAIL or not known, and why
  kctl toolbox cis demo.example.com -o json            for programs
  kctl toolbox cis demo.example.com --accept 1.1.12    this control may fail

Ends with 0 if no control fails but accepted ones, with 3 if one does. What was not observed, and what the benchmark leaves to you, is
not known, with what to look at. Changes nothing.")]
pub struct ToolboxCis {
    /// The cluster; instead of --name
    #[arg(value_name = "NAME")]
    pub cluster: Option<String>,
    /// A control that may fail, by its number; may be given several times
    #[arg(long, value_name = "NUMBER")]
    pub accept: Vec<String>,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ReportFormat,
    /// How the API is reached.
    #[command(flatten)]
    pub reach: ApiReach,
}
