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
  kctl upgrade demo.example.com --finalize --yes                 end the emulation of the minor before; then there is no way back
  kctl upgrade demo.example.com --rollback --yes                 go back to the version before

The spec alone changes: `kctl reconcile --yes` then updates AWS and replaces the instances. After an upgrade to another minor, control \
planes have the new version and emulate the minor before, and all else stays as it is, until --finalize or --rollback."
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
    /// Go to another minor at once: this upgrade cannot be taken back
    #[arg(long)]
    pub no_emulation: bool,
    /// End the emulation of the minor before, and give the new version to everything
    #[arg(long, conflicts_with_all = ["kubernetes_version", "no_emulation", "rollback"])]
    pub finalize: bool,
    /// Take back an upgrade that is not finalized
    #[arg(long, conflicts_with_all = ["kubernetes_version", "no_emulation", "force", "no_backup"])]
    pub rollback: bool,
    /// Write the version although the cluster is not ready for it
    #[arg(long)]
    pub force: bool,
    /// Take no snapshots of etcd before the spec gets another minor, or an upgrade is finalized
    #[arg(long)]
    pub no_backup: bool,
    /// How the API is reached.
    #[command(flatten)]
    pub reach: ApiReach,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ReportFormat,
}
