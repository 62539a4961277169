//! `kctl delete`.

use super::{PlanFormat, ReplacementOptions, ReportFormat, SecretName};
use crate::duration;
use clap::{Args, Subcommand};
use std::time::Duration;

/// `kctl delete`.
#[derive(Debug, Args)]
pub struct Delete {
    /// What to delete.
    #[command(subcommand)]
    pub what: DeleteWhat,
}

/// What `kctl delete` deletes.
#[derive(Debug, Subcommand)]
pub enum DeleteWhat {
    /// Delete everything a cluster has in AWS, then its spec and its state
    Cluster(DeleteCluster),
    /// Take an instance group out of the spec
    #[command(name = "instancegroup", visible_alias = "ig")]
    InstanceGroup(DeleteGroup),
    /// Drain and terminate an instance, which its group replaces
    Instance(DeleteInstance),
    /// Take an object of yours out of those that are applied to the cluster
    Object(DeleteObject),
    /// Delete a secret from the state store
    Secret(DeleteSecret),
    /// Take public SSH keys out of a cluster
    #[command(name = "sshpublickey", visible_alias = "sshpublickeys")]
    SshPublicKey(DeleteSshKeys),
}

/// `kctl delete instance`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl delete instance i-0a1b2c3d4e5f60718         show what would stop its replacement
  kctl delete instance i-0a1b2c3d4e5f60718 --yes   replace it, as a rolling update does")]
pub struct DeleteInstance {
    /// The instance, i-...
    #[arg(value_name = "INSTANCE")]
    pub instance: String,
    /// Replace it
    #[arg(short, long)]
    pub yes: bool,
    /// Do not ask the Kubernetes API: terminate the instance without draining it
    #[arg(long)]
    pub cloudonly: bool,
    /// How it is replaced.
    #[command(flatten)]
    pub replacement: ReplacementOptions,
    /// Form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ReportFormat,
}

/// `kctl delete object`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl delete object ConfigMap settings --namespace shop --yes
  kctl update --yes                            then remove it from the cluster")]
pub struct DeleteObject {
    /// Its kind
    #[arg(value_name = "KIND")]
    pub kind: String,
    /// Its name
    #[arg(value_name = "OBJECT")]
    pub object: String,
    /// Its namespace, if there are several of this kind and name
    #[arg(long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Take it out
    #[arg(short, long)]
    pub yes: bool,
}

/// `kctl delete secret`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl delete secret dockerconfig --yes")]
pub struct DeleteSecret {
    /// Which secret
    #[arg(value_name = "SECRET")]
    pub secret: SecretName,
    /// Delete it
    #[arg(short, long)]
    pub yes: bool,
}

/// `kctl delete sshpublickey`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl delete sshpublickey --name demo.example.com            show what would be deleted
  kctl delete sshpublickey 3b:4b:7d:2a:2e:7e:3e:f5:0b:3d:8e:1c:4f:6a:59:10 --yes
  kctl update --yes                            then launch new instances without it")]
pub struct DeleteSshKeys {
    /// The keys, as `kctl get sshpublickeys` shows them [default: all of the cluster]
    #[arg(value_name = "FINGERPRINT")]
    pub fingerprints: Vec<String>,
    /// Delete them
    #[arg(short, long)]
    pub yes: bool,
}

/// `kctl delete cluster`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl delete cluster demo.example.com         show what would be deleted
  kctl delete cluster demo.example.com --yes   delete it
  kctl delete cluster demo.example.com --yes --delete-backups

A last snapshot of etcd is taken before, and backups are kept.")]
pub struct DeleteCluster {
    /// The cluster; here or with --name, never from the environment
    #[arg(value_name = "NAME")]
    pub cluster: Option<String>,
    /// Delete it
    #[arg(short, long)]
    pub yes: bool,
    /// Form of the plan
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: PlanFormat,
    /// Wait up to this long for the lock if another process holds it: 10m, 90s
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub lock_wait: Option<Duration>,
    /// Only delete the cluster's spec and state from the state store; leave AWS as it is
    #[arg(long)]
    pub unregister: bool,
    /// Delete the backups of etcd too
    #[arg(long)]
    pub delete_backups: bool,
    /// Take no last snapshot of etcd, also if etcd does not serve
    #[arg(long)]
    pub no_last_backup: bool,
}

/// `kctl delete ig`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl delete ig nodes-eu-west-1a --yes        take it out of the spec
  kctl delete ig control-plane-eu-west-1d control-plane-eu-west-1e --yes
  kctl update --yes                            then remove members of etcd, and delete the instances")]
pub struct DeleteGroup {
    /// The instance groups
    #[arg(value_name = "GROUP", required = true)]
    pub groups: Vec<String>,
    /// Delete them
    #[arg(short, long)]
    pub yes: bool,
}
