//! `kctl validate`.

use super::{ApiReach, ClusterWords, ReportFormat};
use crate::duration;
use clap::Args;
use fleet::IgnoredProblem;
use std::time::Duration;

/// `kctl validate`.
#[derive(Clone, Debug, Args)]
#[command(
    override_usage = "kctl validate [OPTIONS] [cluster] [NAME]",
    after_help = "\
Examples:
  kctl validate demo.example.com
  kctl validate --wait 10m
  kctl validate --wait 15m --count 3 -o json
  kctl validate --ignore Pod/kube-system/coredns-*

Ends with 0 if the cluster is healthy, with 3 if it is not."
)]
pub struct Validate {
    /// The cluster.
    #[command(flatten)]
    pub target: ClusterWords,
    /// Wait up to this long until the cluster is healthy: 10m, 90s
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub wait: Option<Duration>,
    /// Number of consecutive healthy results required
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,
    /// Time between two checks
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    pub interval: Duration,
    /// Problems that do not make the cluster unhealthy, as the report names them; * at the end stands for any text
    #[arg(long, value_name = "KIND[/NAME]")]
    pub ignore: Vec<IgnoredProblem>,
    /// How the API is reached.
    #[command(flatten)]
    pub reach: ApiReach,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ReportFormat,
}
