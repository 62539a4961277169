//! `kctl edit` and `kctl replace`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Single fields of a spec.
#[derive(Clone, Debug, Default, Args)]
pub struct Setters {
    /// Set a field: spec.PATH=VALUE. To a list it adds, as with kOps; spec.PATH=[VALUE] replaces the list; repeatable
    #[arg(long, alias = "override", value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Remove a field of the spec: spec.PATH; repeatable
    #[arg(long, value_name = "PATH")]
    pub unset: Vec<String>,
}

/// `kctl edit`.
#[derive(Debug, Args)]
pub struct Edit {
    /// What to edit.
    #[command(subcommand)]
    pub what: EditWhat,
}

/// What `kctl edit` edits.
#[derive(Debug, Subcommand)]
pub enum EditWhat {
    /// Edit a cluster's spec
    Cluster(EditCluster),
    /// Edit an instance group's spec
    #[command(name = "instancegroup", visible_alias = "ig")]
    InstanceGroup(EditGroup),
    /// Edit the objects of yours that are applied to a cluster
    Objects(EditObjects),
}

/// `kctl edit objects`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl edit objects demo.example.com")]
pub struct EditObjects {
    /// The cluster; instead of --name
    #[arg(value_name = "NAME")]
    pub cluster: Option<String>,
}

/// `kctl edit cluster`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl edit cluster demo.example.com
  kctl edit cluster --set spec.kubernetesVersion=1.36.3 --unset spec.sshAccess")]
pub struct EditCluster {
    /// The cluster; instead of --name
    #[arg(value_name = "NAME")]
    pub cluster: Option<String>,
    /// Fields to change without an editor.
    #[command(flatten)]
    pub setters: Setters,
    /// Accept known kOps fields that kctl does not act on, with a warning
    #[arg(long)]
    pub allow_unsupported: bool,
}

/// `kctl edit ig`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl edit ig nodes-eu-west-1a
  kctl edit ig nodes-eu-west-1a --set spec.maxSize=5")]
pub struct EditGroup {
    /// The instance group
    #[arg(value_name = "GROUP")]
    pub group: String,
    /// Fields to change without an editor.
    #[command(flatten)]
    pub setters: Setters,
    /// Accept known kOps fields that kctl does not act on, with a warning
    #[arg(long)]
    pub allow_unsupported: bool,
}

/// `kctl replace`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl get all demo.example.com -o yaml > cluster.yaml
  kctl replace -f cluster.yaml")]
pub struct Replace {
    /// A file of Cluster, InstanceGroup and SSHCredential objects, and of objects that are applied to the cluster, in YAML; `-` is stdin; repeatable
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Create what does not exist yet
    #[arg(long)]
    pub force: bool,
    /// Accept known kOps fields that kctl does not act on, with a warning
    #[arg(long)]
    pub allow_unsupported: bool,
}
