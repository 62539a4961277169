//! `kctl explain`.

use super::ReportFormat;
use clap::Args;

/// `kctl explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl explain cluster.spec.networking.cilium
  kctl explain ig.spec.rootVolumeSize
  kctl explain cluster.spec.etcdClusters --recursive
  kctl explain cluster.spec -o json")]
pub struct Explain {
    /// A kind and the path of a field: cluster.spec.kubelet, instancegroup.spec.taints (or ig.spec.taints). Indexes of lists may be left out
    #[arg(value_name = "FIELD")]
    pub field: String,
    /// List all fields below it, not only its own
    #[arg(long)]
    pub recursive: bool,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ReportFormat,
}
