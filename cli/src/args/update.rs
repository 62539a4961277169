//! `kctl update`.

use super::{ClusterWords, KubeconfigCredentials, PlanFormat};
use crate::duration;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// `kctl update [cluster] [NAME]`.
#[derive(Debug, Default, Args)]
#[command(
    override_usage = "kctl update [OPTIONS] [cluster] [NAME]",
    after_help = "\
Examples:
  kctl update                                  show what would change
  kctl update demo.example.com --yes           change it
  kctl update -o json --exit-code              for programs: exit code 10 if something would change
  kctl update --plan-out change.plan           show what would change, and keep it for review
  kctl update --plan change.plan               show it again, and whether it still applies
  kctl update --plan change.plan --yes         change exactly that, or nothing"
)]
pub struct Update {
    /// The cluster.
    #[command(flatten)]
    pub target: ClusterWords,
    /// Apply the changes
    #[arg(short, long)]
    pub yes: bool,
    /// Form of the plan
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: PlanFormat,
    /// Exit with 10 if changes are pending
    #[arg(long)]
    pub exit_code: bool,
    /// Write the plan to a file, for review and for --plan; the file contains user data and spec
    #[arg(long, value_name = "FILE", conflicts_with_all = ["yes", "plan"])]
    pub plan_out: Option<PathBuf>,
    /// Show a plan that --plan-out wrote; with --yes, apply it, unless the plan would be different now
    #[arg(long, value_name = "FILE", conflicts_with_all = ["refresh", "allow_unsupported", "ignore_kubelet_version_skew"])]
    pub plan: Option<PathBuf>,
    /// Read everything again, including what is otherwise compared by digest
    #[arg(long)]
    pub refresh: bool,
    /// Accept known kOps fields that kctl does not act on, with a warning
    #[arg(long)]
    pub allow_unsupported: bool,
    /// Give workers the spec's Kubernetes version immediately, whatever the control planes run
    #[arg(long)]
    pub ignore_kubelet_version_skew: bool,
    /// With --yes: wait up to this long for the lock if another process holds it: 10m, 90s
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub lock_wait: Option<Duration>,
    /// With --yes: write a kubeconfig [default: only with --admin]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub create_kube_config: Option<bool>,
    /// The kubeconfig's credentials.
    #[command(flatten)]
    pub credentials: KubeconfigCredentials,
}
