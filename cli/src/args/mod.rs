//! The command line as clap types. `commands` implements the commands.

mod bundle;
mod cluster_words;
mod create;
mod delete;
mod edit;
mod etcd;
mod etcd_snapshot;
mod explain;
mod export;
mod get;
mod help;
mod keypair;
pub mod kops;
mod lock;
mod preflight;
mod reach;
mod reconcile;
mod render;
mod report;
mod rolling_update;
mod schema;
mod toolbox;
mod update;
mod upgrade;
mod validate;
mod version;

pub use bundle::{Bundle, BundleCreate, BundlePush, BundleVerify, BundleWhat};
pub use cluster_words::ClusterWords;
pub use create::{
    Authorization, Create, CreateCluster, CreateGroup, CreateObjects, CreateSecret, CreateWhat,
    Dns, GroupRole, KopsOnly, LoadBalancerType, SecretName, Topology,
};
pub use delete::{
    Delete, DeleteCluster, DeleteGroup, DeleteInstance, DeleteObject, DeleteSecret, DeleteSshKeys,
    DeleteWhat,
};
pub use edit::{Edit, EditCluster, EditGroup, EditObjects, EditWhat, Replace, Setters};
pub use etcd::{Etcd, EtcdDisarm, EtcdForget, EtcdMembers, EtcdRecover, EtcdStatus, EtcdWhat};
pub use etcd_snapshot::{
    AskedMember, EtcdDrill, EtcdRestore, EtcdSnapshot, SnapshotDelete, SnapshotDownload,
    SnapshotImport, SnapshotImportState, SnapshotList, SnapshotPlace, SnapshotPrune, SnapshotSave,
    SnapshotVerify, SnapshotWhat,
};
pub use explain::Explain;
pub use export::{Export, ExportKubeconfig, ExportWhat, KubeconfigCredentials};
pub use get::{
    Get, GetAddons, GetAssets, GetInstances, GetKeypairs, GetObjects, GetOfCluster, GetOperations,
    GetOutput, GetSecrets, GetWhat as GetKind, SecretFormat,
};
pub use help::build_command;
pub use keypair::{
    CreateKeypair, Distrust, DistrustKeypair, DistrustWhat, Promote, PromoteKeypair, PromoteWhat,
    Trust, TrustKeypair, TrustWhat,
};
pub use lock::{Lock, LockRelease, LockStatus, LockWhat};
pub use preflight::Preflight;
pub use reach::ApiReach;
pub use reconcile::Reconcile;
pub use render::Render;
pub use report::{Dashboard, Report};
pub use rolling_update::{DrainTimeoutAction, ReplacementOptions, RoleName, RollingUpdate};
pub use schema::{Schema, SchemaKind};
pub use toolbox::{Toolbox, ToolboxCis, ToolboxDump, ToolboxWhat};
pub use update::Update;
pub use upgrade::Upgrade;
pub use validate::Validate;
pub use version::Version;

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Kubernetes clusters on AWS from one spec.
#[derive(Debug, Parser)]
#[command(
    name = "kctl",
    version,
    disable_help_subcommand = true,
    disable_help_flag = true,
    disable_version_flag = true,
    max_term_width = 100
)]
pub struct Cli {
    /// Options that every command takes.
    #[command(flatten)]
    pub global: GlobalOptions,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options that every command takes.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct GlobalOptions {
    /// Where clusters are kept: s3://BUCKET[/PREFIX] or file://DIR [env: KCTL_STATE_STORE, KOPS_STATE_STORE]
    #[arg(long, global = true, value_name = "URL")]
    pub state: Option<String>,
    /// The cluster [env: KCTL_CLUSTER_NAME, KOPS_CLUSTER_NAME]
    #[arg(long, global = true, value_name = "NAME")]
    pub name: Option<String>,
    /// Whether to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// Log details; twice: more of them. Bodies of requests and responses are never logged
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Print only results, warnings and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Print help
    #[arg(short, long, global = true, action = clap::ArgAction::HelpShort)]
    help: Option<bool>,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set or TERM is `dumb`.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a cluster, a secret, a key, or objects from files
    Create(Create),
    /// Show clusters, instance groups, instances, keys, secrets and operations
    Get(Get),
    /// Change a cluster or an instance group in an editor or with --set
    Edit(Edit),
    /// Replace objects with what is in files
    Replace(Replace),
    /// Show how AWS differs from the spec; with --yes, apply the changes
    Update(Update),
    /// Show which instances are out of date; with --yes, replace them
    RollingUpdate(RollingUpdate),
    /// Update the cluster and replace its instances, in the order that version skew allows
    Reconcile(Reconcile),
    /// Choose the next Kubernetes version, after checking that the cluster is ready for it
    Upgrade(Upgrade),
    /// Let another key of a keyset sign
    Promote(Promote),
    /// Trust a key of a keyset again
    Trust(Trust),
    /// Trust keys of a keyset no longer
    Distrust(Distrust),
    /// Check quotas, free addresses, IAM permissions, DNS and network rules before an update
    Preflight(Preflight),
    /// Check whether a cluster is healthy, and wait until it is
    Validate(Validate),
    /// Write a page that shows a cluster: problems, boots, etcd, backups, operations
    Report(Report),
    /// Serve the page of `kctl report` on this computer (127.0.0.1), and keep it up to date
    Dashboard(Dashboard),
    /// Delete a cluster, an instance group or a secret
    Delete(Delete),
    /// See and maintain the etcd clusters and their backups
    Etcd(Etcd),
    /// Put all files and images of a cluster into one file, for networks without internet
    Bundle(Bundle),
    /// Show or release the lock of a cluster
    Lock(Lock),
    /// Tools for finding faults
    Toolbox(Toolbox),
    /// Write a kubeconfig
    Export(Export),
    /// Write everything that follows from a spec into a folder, without AWS
    Render(Render),
    /// Describe a field of the spec: meaning, type, default, and the fields below it
    Explain(Explain),
    /// Print the JSON Schema of spec files, for editors
    Schema(Schema),
    /// Print the script that completes kctl's commands in a shell
    #[command(
        after_help = "Examples:\n  source <(kctl completion bash)\n  kctl completion zsh > ~/.zfunc/_kctl\n  kctl completion fish > ~/.config/fish/completions/kctl.fish"
    )]
    Completion(Completion),
    /// Print kctl's version
    Version(Version),
    /// Write the reference of all commands as Markdown into a folder
    #[command(hide = true)]
    Reference(Reference),
}

/// `kctl completion`.
#[derive(Debug, Args)]
pub struct Completion {
    /// Which shell
    pub shell: CompletionShell,
}

/// Shells that kctl has completions for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompletionShell {
    Bash,
    Zsh,
    Fish,
}

/// `kctl reference`.
#[derive(Debug, Args)]
pub struct Reference {
    /// The folder; what is in it is replaced
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// A form of output for people or for programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// Columns
    #[default]
    Table,
    /// More columns
    Wide,
    /// YAML as kOps writes it
    Yaml,
    /// One JSON document
    Json,
    /// Names only
    Name,
}

/// A form of output for a spec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SpecFormat {
    /// YAML as kOps writes it
    #[default]
    Yaml,
    /// One JSON document
    Json,
}

/// A form of output for a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Columns
    #[default]
    Table,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
}

/// A form of output for a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// For people, in brief
    #[default]
    Table,
    /// For people, in full
    Wide,
    /// One JSON document at the end
    Json,
    /// JSON lines while it runs
    Events,
}

impl PlanFormat {
    /// True if stdout is for programs alone.
    pub fn is_for_programs(self) -> bool {
        matches!(self, Self::Json | Self::Events)
    }
}
