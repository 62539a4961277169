//! `kctl reconcile`.

use super::{ClusterWords, ReplacementOptions};
use clap::Args;

/// `kctl reconcile [cluster] [NAME]`.
#[derive(Clone, Debug, Args)]
#[command(
    override_usage = "kctl reconcile [OPTIONS] [cluster] [NAME]",
    after_help = "\
Examples:
  kctl reconcile                           show what would change, and which instances would be replaced
  kctl reconcile demo.example.com --yes    update, replace control planes, update, replace all other instances

An interrupted reconcile goes on where it ended: repeat the command."
)]
pub struct Reconcile {
    /// The cluster.
    #[command(flatten)]
    pub target: ClusterWords,
    /// Apply the changes and replace the instances
    #[arg(short, long)]
    pub yes: bool,
    /// Accept known kOps fields that kctl does not act on, with a warning
    #[arg(long)]
    pub allow_unsupported: bool,
    /// How instances are replaced.
    #[command(flatten)]
    pub replacement: ReplacementOptions,
}
