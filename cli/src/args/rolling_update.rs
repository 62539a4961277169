//! `kctl rolling-update`.

use super::{ApiReach, ClusterWords, ReportFormat};
use crate::duration;
use clap::{Args, ValueEnum};
use std::time::Duration;

/// `kctl rolling-update [cluster] [NAME]`.
#[derive(Clone, Debug, Args)]
#[command(
    override_usage = "kctl rolling-update [OPTIONS] [cluster] [NAME]",
    after_help = "\
Examples:
  kctl rolling-update                                    show which instances would be replaced, and what would stop it
  kctl rolling-update demo.example.com --yes             replace them
  kctl rolling-update --instance-group nodes-a --yes     replace those of one group
  kctl rolling-update --force --yes                      replace every instance
  kctl rolling-update --yes --interactive                ask before each instance
  kctl rolling-update --yes --on-drain-timeout force     delete pods that could not be evicted in time

An interrupted rolling update goes on where it ended: repeat the command."
)]
pub struct RollingUpdate {
    /// The cluster.
    #[command(flatten)]
    pub target: ClusterWords,
    /// Replace the instances
    #[arg(short, long)]
    pub yes: bool,
    /// Only these instance groups
    #[arg(long, value_name = "GROUP,...", value_delimiter = ',')]
    pub instance_group: Vec<String>,
    /// Only instance groups with these roles
    #[arg(
        long,
        value_name = "ROLE,...",
        value_delimiter = ',',
        ignore_case = true
    )]
    pub instance_group_roles: Vec<RoleName>,
    /// Replace every instance, also those that are up to date
    #[arg(long)]
    pub force: bool,
    /// Do not ask the Kubernetes API: terminate instances without draining them
    #[arg(long)]
    pub cloudonly: bool,
    /// Replace one instance at a time, and ask before each
    #[arg(short, long, requires = "yes")]
    pub interactive: bool,
    /// How instances are replaced.
    #[command(flatten)]
    pub replacement: ReplacementOptions,
    /// The only instance to replace; given by `kctl delete instance`.
    #[arg(skip)]
    pub instance: Option<String>,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ReportFormat,
}

impl RollingUpdate {
    /// One of all instances that are out of date, for other commands.
    pub fn new(target: ClusterWords, yes: bool, replacement: ReplacementOptions) -> Self {
        Self {
            target,
            yes,
            instance_group: Vec::new(),
            instance_group_roles: Vec::new(),
            force: false,
            cloudonly: false,
            interactive: false,
            replacement,
            instance: None,
            output: ReportFormat::Table,
        }
    }
}

/// How instances are replaced.
#[derive(Clone, Debug, Args)]
pub struct ReplacementOptions {
    /// At most this many instances at the same time, in all groups together
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub parallelism: u32,
    /// How long the pods of an instance may take to leave it
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = duration::parse)]
    pub drain_timeout: Duration,
    /// What happens to an instance whose pods do not leave it in time
    #[arg(long, value_name = "WHAT", default_value = "fail")]
    pub on_drain_timeout: DrainTimeoutAction,
    /// Time between the end of a drain and the termination
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration::parse)]
    pub post_drain_delay: Duration,
    /// How long a replacement may take to be Ready, and how long a new problem of the cluster may last
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = duration::parse)]
    pub validation_timeout: Duration,
    /// With --yes: wait up to this long for the lock if another process holds it: 10m, 90s
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub lock_wait: Option<Duration>,
    /// Take no snapshot of etcd before control planes are replaced
    #[arg(long)]
    pub no_backup: bool,
    /// How the API is reached.
    #[command(flatten)]
    pub reach: ApiReach,
}

/// A role, as kOps writes it in options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RoleName {
    /// Control planes.
    #[value(alias = "master")]
    ControlPlane,
    /// Workers.
    Node,
    /// Bastions.
    Bastion,
}

/// What happens to an instance that could not be drained in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DrainTimeoutAction {
    /// Stop, and let pods be scheduled on it again.
    #[default]
    Fail,
    /// Delete the remaining pods, whatever their disruption budgets say.
    Force,
    /// Terminate it with the remaining pods on it.
    Skip,
}
