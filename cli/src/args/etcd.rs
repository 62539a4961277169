//! `kctl etcd`.

use super::{EtcdDrill, EtcdRestore, EtcdSnapshot, ReportFormat};
use crate::duration;
use clap::{Args, Subcommand};
use std::time::Duration;

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
    /// List the members of the etcd clusters, as etcd does
    Members(EtcdMembers),
    /// Disarm the alarm CORRUPT, once all members have the same data again
    Disarm(EtcdDisarm),
    /// Begin an etcd cluster anew with the data of one member, after more than half were lost
    Recover(EtcdRecover),
    /// Take, list, verify, download, import, delete and prune snapshots
    Snapshot(EtcdSnapshot),
    /// Read the newest snapshot as a restore would, and say whether that works and how long it takes
    Drill(EtcdDrill),
    /// Put a snapshot in the place of an etcd cluster's data
    Restore(EtcdRestore),
    /// Found etcd without a member whose machine does not come, or the events anew
    Forget(EtcdForget),
}

/// `kctl etcd status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl etcd status demo.example.com
  kctl etcd status -o json

Reads only the state store, to which protokube on each control plane reports once a minute and at every change.
Ends with 0 whatever it shows: `kctl validate` fails for the same problems.")]
pub struct EtcdStatus {
    /// The cluster; instead of --name
    #[arg(value_name = "NAME")]
    pub cluster: Option<String>,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ReportFormat,
}

/// `kctl etcd members`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl etcd members demo.example.com
  kctl etcd members -o json")]
pub struct EtcdMembers {
    /// The cluster; instead of --name
    #[arg(value_name = "NAME")]
    pub cluster: Option<String>,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ReportFormat,
}

/// `kctl etcd disarm`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl etcd disarm demo.example.com
  kctl etcd disarm demo.example.com --etcd events

For the time after a corrupt member was replaced. protokube compares the data of all members first.
protokube ends the alarm NOSPACE by itself, once objects were deleted or the quota was raised.")]
pub struct EtcdDisarm {
    /// The cluster; instead of --name
    #[arg(value_name = "NAME")]
    pub cluster: Option<String>,
    /// The etcd cluster: main, events
    #[arg(long, value_name = "ETCD", default_value = "main")]
    pub etcd: String,
    /// How long protokube may take to begin: 2m, 90s; then the command is withdrawn
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration::parse)]
    pub timeout: Duration,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ReportFormat,
}

/// `kctl etcd recover`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl etcd recover demo.example.com                     shows the data of each member, and which is newest
  kctl etcd recover demo.example.com --from b            shows what a recovery from member b does
  kctl etcd recover demo.example.com --from b --yes
  kctl etcd recover demo.example.com --etcd events --from b --yes
  kctl etcd recover demo.example.com --call-off

For an etcd cluster without a quorum only. With a quorum, lost members are replaced without a command.
protokube does the work; an interrupted command can be repeated, and follows what is under way.")]
pub struct EtcdRecover {
    /// The cluster; instead of --name
    #[arg(value_name = "NAME")]
    pub cluster: Option<String>,
    /// The etcd cluster: main, events
    #[arg(long, value_name = "ETCD", default_value = "main")]
    pub etcd: String,
    /// The member whose data is kept
    #[arg(long, value_name = "MEMBER")]
    pub from: Option<String>,
    /// Give up what only other members have, or may have
    #[arg(long, requires = "from")]
    pub force: bool,
    /// Call a recovery off for which no member has stopped yet
    #[arg(long, conflicts_with_all = ["from", "timeout", "output"])]
    pub call_off: bool,
    /// Do it
    #[arg(short, long, requires = "from")]
    pub yes: bool,
    /// How long to follow the recovery: 10m, 90s; protokube goes on afterwards
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration::parse)]
    pub timeout: Duration,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ReportFormat,
}

/// `kctl etcd forget`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl etcd forget demo.example.com c                           shows what would happen
  kctl etcd forget demo.example.com c --yes                     in both etcd clusters
  kctl etcd forget demo.example.com c --etcd main --yes
  kctl etcd forget demo.example.com --etcd events --all --yes   events begin empty

A member is forgotten only while its etcd cluster is being founded and nobody has seen its volume. If its machine comes later, it joins.
Members of an etcd cluster that exists are removed from the spec: `kctl update` shows how.")]
pub struct EtcdForget {
    /// The cluster
    #[arg(value_name = "NAME")]
    pub cluster: String,
    /// The member: c, etcd-c
    #[arg(
        value_name = "MEMBER",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub member: Option<String>,
    /// The etcd cluster: main, events [default: both]
    #[arg(long, value_name = "ETCD")]
    pub etcd: Option<String>,
    /// Give up all data of events, which has no quorum, and found it anew
    #[arg(long, requires = "etcd")]
    pub all: bool,
    /// Do it
    #[arg(short, long)]
    pub yes: bool,
}
