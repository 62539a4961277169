//! `kctl upgrade`.

use super::{ApiReach, ClusterWords, ReportFormat};
use clap::Args;

/// `kctl upgrade [cluster] [NAME]`.
#[derive(Clone, Debug, Args)]
#[command(
    override_usage = "kctl upgrade [OPTIONS] [cluster] [NAME]",
    after_help = "\
Examples:
  kctl upgrade                                                   show the next version, and whether the cluster is ready for it
  kctl upgrade demo.example.com --yes                            write it to the spec
  kctl upgrade demo.example.com --kubernetes-version 1.36.3 --yes

The spec alone changes: `kctl reconcile --yes` then updates AWS and replaces the instances."
)]
pub struct Upgrade {
    /// The cluster.
    #[command(flatten)]
    pub target: ClusterWords,
    /// Write the version to the spec
    #[arg(short, long)]
    pub yes: bool,
    /// Upgrade to this version [default: the recommended patch of the minor, then of the next minor]
    #[arg(long, value_name = "VERSION")]
    pub kubernetes_version: Option<String>,
    /// Write the version although the cluster is not ready for it
    #[arg(long)]
    pub force: bool,
    /// How the API is reached.
    #[command(flatten)]
    pub reach: ApiReach,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ReportFormat,
}
