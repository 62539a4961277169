//! `kctl get`.

use super::{ApiReach, ListFormat, ReportFormat, SecretName};
use clap::{Args, Subcommand, ValueEnum};

/// `kctl get`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Get {
    /// What to show; nothing: clusters.
    #[command(subcommand)]
    pub what: Option<GetWhat>,
    /// How to show it.
    #[command(flatten)]
    pub form: GetOutput,
}

/// How to show it.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct GetOutput {
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ListFormat,
    /// Show clusters with every default written down
    #[arg(long)]
    pub full: bool,
}

/// What `kctl get` shows.
#[derive(Debug, Subcommand)]
pub enum GetWhat {
    /// Show clusters
    #[command(
        visible_alias = "cluster",
        after_help = "Examples:\n  kctl get clusters\n  kctl get cluster demo.example.com -o yaml --full"
    )]
    Clusters(GetObjects),
    /// Show the instance groups of a cluster
    #[command(name = "instancegroups", visible_aliases = ["instancegroup", "ig"], after_help = "Examples:\n  kctl get ig\n  kctl get ig nodes-eu-west-1a -o yaml")]
    InstanceGroups(GetObjects),
    /// Show the objects of yours that are applied to a cluster
    #[command(
        visible_alias = "object",
        after_help = "Examples:\n  kctl get objects\n  kctl get objects -o yaml > objects.yaml"
    )]
    Objects(GetObjects),
    /// Show a cluster and its instance groups
    #[command(after_help = "Examples:\n  kctl get all demo.example.com -o yaml > cluster.yaml")]
    All(GetObjects),
    /// Show the instances of a cluster, and why some have not joined
    #[command(
        visible_alias = "instance",
        after_help = "Examples:\n  kctl get instances demo.example.com\n  kctl get instances -o wide"
    )]
    Instances(GetInstances),
    /// Show the addons of a cluster: version, whether each works, what somebody has changed
    #[command(
        visible_alias = "addon",
        after_help = "Examples:\n  kctl get addons demo.example.com\n  kctl get addons -o json"
    )]
    Addons(GetAddons),
    /// Show the files and images that a cluster's instances need, and where they get them; with --copy, copy them there
    #[command(
        visible_alias = "asset",
        after_help = "Examples:\n  kctl get assets demo.example.com\n  kctl get assets -o json\n  kctl get assets --copy    to spec.assets.fileRepository in S3, and to spec.assets.containerRegistry"
    )]
    Assets(GetAssets),
    /// Show the public SSH keys of a cluster
    #[command(
        name = "sshpublickeys",
        visible_alias = "sshpublickey",
        after_help = "Examples:\n  kctl get sshpublickeys"
    )]
    SshPublicKeys(GetOfCluster),
    /// Show the keys of a cluster's keysets: which signs, which are trusted
    #[command(
        name = "keypairs",
        visible_alias = "keypair",
        after_help = "Examples:\n  kctl get keypairs\n  kctl get keypairs --distrusted\n  kctl get keypairs kubernetes-ca --instances    which instances use which key"
    )]
    KeyPairs(GetKeypairs),
    /// Show which secrets a cluster has; with -o plaintext the content of one
    #[command(
        visible_alias = "secret",
        after_help = "Examples:\n  kctl get secrets\n  kctl get secret encryptionconfig -o plaintext"
    )]
    Secrets(GetSecrets),
    /// Show the operations on a cluster: who, when, result; with an ID every step of one operation
    #[command(
        visible_alias = "operation",
        after_help = "Examples:\n  kctl get operations\n  kctl get operations --limit 100 -o json\n  kctl get operation 20261121T10"
    )]
    Operations(GetOperations),
}

/// Which objects to show, and how.
#[derive(Clone, Debug, Default, Args)]
pub struct GetObjects {
    /// Only this one
    #[arg(value_name = "NAME")]
    pub object: Option<String>,
    /// How to show it.
    #[command(flatten)]
    pub form: GetOutput,
}

/// `kctl get keypairs`.
#[derive(Clone, Debug, Default, Args)]
pub struct GetKeypairs {
    /// Only this keyset
    #[arg(value_name = "KEYSET")]
    pub keyset: Option<String>,
    /// Show the keys that are no longer trusted too
    #[arg(long)]
    pub distrusted: bool,
    /// Say which instances trust each key, and which use what it signs
    #[arg(long)]
    pub instances: bool,
    /// How to show it.
    #[command(flatten)]
    pub form: GetOutput,
}

/// A cluster, and how to show its objects.
#[derive(Clone, Debug, Default, Args)]
pub struct GetOfCluster {
    /// The cluster; instead of --name
    #[arg(value_name = "CLUSTER")]
    pub cluster: Option<String>,
    /// How to show it.
    #[command(flatten)]
    pub form: GetOutput,
}

/// `kctl get instances`.
#[derive(Clone, Debug, Default, Args)]
pub struct GetInstances {
    /// The cluster; instead of --name
    #[arg(value_name = "CLUSTER")]
    pub cluster: Option<String>,
    /// How the API is reached.
    #[command(flatten)]
    pub reach: ApiReach,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ListFormat,
}

/// `kctl get addons`.
#[derive(Clone, Debug, Default, Args)]
pub struct GetAddons {
    /// The cluster; instead of --name
    #[arg(value_name = "CLUSTER")]
    pub cluster: Option<String>,
    /// How the API is reached.
    #[command(flatten)]
    pub reach: ApiReach,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ListFormat,
}

/// `kctl get assets`.
#[derive(Clone, Debug, Default, Args)]
pub struct GetAssets {
    /// The cluster; instead of --name
    #[arg(value_name = "CLUSTER")]
    pub cluster: Option<String>,
    /// Copy what is not there yet to spec.assets.fileRepository and spec.assets.containerRegistry
    #[arg(long)]
    pub copy: bool,
    /// Copy over other images that have the same tags there
    #[arg(long, requires = "copy")]
    pub overwrite: bool,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ReportFormat,
}

/// `kctl get secrets`.
#[derive(Clone, Debug, Default, Args)]
pub struct GetSecrets {
    /// Only this one
    #[arg(value_name = "SECRET")]
    pub secret: Option<SecretName>,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: SecretFormat,
}

/// A form of output for secrets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SecretFormat {
    /// Columns
    #[default]
    Table,
    /// YAML, without the contents
    Yaml,
    /// One JSON document, without the contents
    Json,
    /// Names only
    Name,
    /// The content of the named secret
    Plaintext,
}

/// `kctl get operations`.
#[derive(Clone, Debug, Default, Args)]
pub struct GetOperations {
    /// Only this one, with its steps; the beginning of its ID is enough
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// How many, the newest first
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "id")]
    pub limit: usize,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ListFormat,
}
