//! `kctl etcd snapshot` and `kctl etcd restore`.

use super::ReportFormat;
use crate::{duration, moment};
use clap::{ArgGroup, Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;
use time::OffsetDateTime;

/// `kctl etcd snapshot`.
#[derive(Debug, Args)]
pub struct EtcdSnapshot {
    /// What to do.
    #[command(subcommand)]
    pub what: SnapshotWhat,
}

/// What `kctl etcd snapshot` does.
#[derive(Debug, Subcommand)]
pub enum SnapshotWhat {
    /// Take a snapshot now, verify it and store it; it is never deleted by itself
    Save(SnapshotSave),
    /// List the snapshots in the backup store
    List(SnapshotList),
    /// Let a scratch etcd on a control plane read a stored snapshot, and count what is in it
    Verify(SnapshotVerify),
    /// Write a snapshot to a file, as `etcdutl snapshot restore` reads it
    Download(SnapshotDownload),
    /// Bring a snapshot from a file into the backup store, so that it can be restored
    Import(SnapshotImport),
    /// Write the spec and the keys of a cluster, sealed beside its snapshots, into a state store that was lost
    ImportState(SnapshotImportState),
    /// Delete snapshots by name
    Delete(SnapshotDelete),
    /// Delete the scheduled snapshots that the retention in the spec does not keep
    Prune(SnapshotPrune),
}

/// Which backup store.
#[derive(Clone, Debug, Args)]
pub struct SnapshotPlace {
    /// The etcd cluster: main, events
    #[arg(long, value_name = "ETCD", default_value = "main")]
    pub etcd: String,
}

/// Which etcd cluster's member does the work.
#[derive(Clone, Debug, Args)]
pub struct AskedMember {
    #[command(flatten)]
    pub place: SnapshotPlace,
    /// How long protokube may take to begin: 2m, 90s; then the command is withdrawn
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration::parse)]
    pub timeout: Duration,
}

/// `kctl etcd drill`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl etcd drill demo.example.com
  kctl etcd drill demo.example.com --etcd events

protokube on a control plane downloads the newest verified snapshot, lets a scratch etcd read it, counts its keys, and decrypts a Secret if
they are encrypted. Nothing changes but the result that `kctl validate` shows. protokube does the same by itself once a day.")]
pub struct EtcdDrill {
    /// The cluster; instead of --name
    #[arg(value_name = "NAME")]
    pub cluster: Option<String>,
    #[command(flatten)]
    pub asked: AskedMember,
}

/// `kctl etcd snapshot save`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl etcd snapshot save --name demo.example.com
  kctl etcd snapshot save before-upgrade --name demo.example.com

protokube on the instance of a member takes it, preferably not the leader's, compares it with the member's data by etcd's hash, and stores it.")]
pub struct SnapshotSave {
    /// Name of the snapshot, not of the cluster [default: manual-TIME]
    #[arg(value_name = "SNAPSHOT")]
    pub snapshot: Option<String>,
    #[command(flatten)]
    pub asked: AskedMember,
}

/// `kctl etcd snapshot list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl etcd snapshot list --name demo.example.com
  kctl etcd snapshot list --store s3://bucket/main -o json    without the cluster")]
pub struct SnapshotList {
    #[command(flatten)]
    pub place: SnapshotPlace,
    /// Address of a backup store [default: that of the cluster]
    #[arg(long, value_name = "URL", conflicts_with_all = ["etcd", "name"])]
    pub store: Option<String>,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ReportFormat,
}

/// `kctl etcd snapshot verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl etcd snapshot verify --name demo.example.com                 the newest
  kctl etcd snapshot verify before-upgrade --name demo.example.com

As `kctl etcd drill`, with any snapshot.")]
pub struct SnapshotVerify {
    /// Name of the snapshot [default: the newest]
    #[arg(value_name = "SNAPSHOT")]
    pub snapshot: Option<String>,
    #[command(flatten)]
    pub asked: AskedMember,
}

/// `kctl etcd snapshot download`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl etcd snapshot download before-upgrade --file etcd.db --name demo.example.com
  kctl etcd snapshot download before-upgrade --file etcd.db --store s3://bucket/main

The file holds all Secrets of the cluster, unless they are encrypted at rest. Only you can read it.")]
pub struct SnapshotDownload {
    /// Name of the snapshot
    #[arg(value_name = "SNAPSHOT")]
    pub snapshot: String,
    /// File to write; it must not exist
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    /// Also write the sealed spec and private keys of the cluster to this file, as `age --decrypt` reads it
    #[arg(long, value_name = "FILE")]
    pub cluster_state: Option<PathBuf>,
    #[command(flatten)]
    pub place: SnapshotPlace,
    /// Address of a backup store [default: that of the cluster]
    #[arg(long, value_name = "URL", conflicts_with_all = ["etcd", "name"])]
    pub store: Option<String>,
}

/// `kctl etcd snapshot import`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl etcd snapshot import old --file etcd.db --name demo.example.com
  kctl etcd snapshot import old --file etcd.backup.gz --name demo.example.com    of etcd-manager
  kctl etcd snapshot import old --file old.zip --name demo.example.com           of RKE

The hash that etcd writes at the end of a snapshot is checked. `kctl etcd snapshot verify old` then lets a scratch etcd read it.")]
pub struct SnapshotImport {
    /// Name of the snapshot
    #[arg(value_name = "SNAPSHOT")]
    pub snapshot: String,
    /// A file of `etcdctl snapshot save`, the same compressed with gzip, or a zip of RKE with one
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub place: SnapshotPlace,
}

/// `kctl etcd snapshot import-state`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl etcd snapshot import-state state.zip.age --identity key.txt --state s3://bucket

The store must not have the cluster. Nothing that it has is replaced; an interrupted import can be repeated.")]
pub struct SnapshotImportState {
    /// A file of `kctl etcd snapshot download --cluster-state`, or the zip in it
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// A file of `age-keygen` with a private key for which the state is sealed
    #[arg(short, long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
}

/// `kctl etcd snapshot delete`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl etcd snapshot delete before-upgrade --name demo.example.com         shows what would be deleted
  kctl etcd snapshot delete before-upgrade --name demo.example.com --yes

The newest verified snapshot is not deleted.")]
pub struct SnapshotDelete {
    /// Names of snapshots
    #[arg(value_name = "SNAPSHOT", required = true)]
    pub snapshots: Vec<String>,
    #[command(flatten)]
    pub place: SnapshotPlace,
    /// Do it
    #[arg(short, long)]
    pub yes: bool,
}

/// `kctl etcd snapshot prune`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl etcd snapshot prune --name demo.example.com         shows what would be deleted
  kctl etcd snapshot prune --name demo.example.com --yes

protokube does the same after each scheduled snapshot, but for what needs --force.")]
pub struct SnapshotPrune {
    #[command(flatten)]
    pub place: SnapshotPlace,
    /// Also if it is more than half of all scheduled snapshots, or more than a hundred
    #[arg(long)]
    pub force: bool,
    /// Do it
    #[arg(short, long)]
    pub yes: bool,
}

/// `kctl etcd restore`.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("what").args(["snapshot", "time", "latest", "call_off"]).required(true),
    group = ArgGroup::new("restored").args(["snapshot", "time", "latest"]),
    after_help = "\
Examples:
  kctl etcd restore demo.example.com --snapshot before-upgrade           shows what would happen
  kctl etcd restore demo.example.com --snapshot before-upgrade --yes
  kctl etcd restore demo.example.com --time 2026-11-26T15:04:05Z         the last moment that is stored until then
  kctl etcd restore demo.example.com --latest                            the last moment that is stored
  kctl etcd restore demo.example.com --call-off

All writes since then are given up. A snapshot of the present is taken first, and all old data stays on its volumes. The snapshot, with the
changes after it, is proven and unpacked while the members still serve. protokube does the work; an interrupted command can be repeated: it
follows what is under way, and restores nothing twice. With --latest, repeat the command that kctl names: the last moment is a later one then.

--time is compared with the clock of the backup store, not with that of this computer. The command that the preview of --latest ends with
names the moment that it shows."
)]
pub struct EtcdRestore {
    /// The cluster; instead of --name
    #[arg(value_name = "NAME")]
    pub cluster: Option<String>,
    /// The etcd cluster: main, events
    #[arg(long, value_name = "ETCD", default_value = "main")]
    pub etcd: String,
    /// Name of the snapshot, see `kctl etcd snapshot list`
    #[arg(long, value_name = "SNAPSHOT")]
    pub snapshot: Option<String>,
    /// The last moment that is stored until this time: a snapshot and the changes after it. RFC 3339, 2026-11-26T15:04:05Z
    #[arg(long, value_name = "TIME", value_parser = moment::parse)]
    pub time: Option<OffsetDateTime>,
    /// The last moment that is stored
    #[arg(long)]
    pub latest: bool,
    /// The member on whose volume it is restored; the others join anew [default: one that reports]
    #[arg(long, value_name = "MEMBER")]
    pub on: Option<String>,
    /// Go on without a snapshot of the present, with one of another cluster, and if a member does not report; the preview names which
    #[arg(long, requires = "restored")]
    pub force: bool,
    /// Restore it even if no API server could decrypt its Secrets
    #[arg(long, requires = "restored")]
    pub unreadable_secrets: bool,
    /// Restore it even if it was taken with a newer minor of Kubernetes than API servers serve
    #[arg(long, requires = "restored")]
    pub newer_minor: bool,
    /// Restore what the etcd cluster has begun with once more, and give up what was written since
    #[arg(long, requires = "restored")]
    pub again: bool,
    /// End a restore that has not stopped any member yet, at once
    #[arg(long, conflicts_with_all = ["on", "force", "unreadable_secrets", "newer_minor", "again", "yes", "timeout", "output"])]
    pub call_off: bool,
    /// Do it
    #[arg(short, long)]
    pub yes: bool,
    /// How long to follow the restore: 10m, 90s; protokube goes on afterwards
    #[arg(long, value_name = "DURATION", default_value = "20m", value_parser = duration::parse)]
    pub timeout: Duration,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ReportFormat,
}
