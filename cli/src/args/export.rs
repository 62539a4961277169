//! `kctl export`.

use super::ApiReach;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `kctl export`.
#[derive(Debug, Args)]
pub struct Export {
    /// What to export.
    #[command(subcommand)]
    pub what: ExportWhat,
}

/// What `kctl export` exports.
#[derive(Debug, Subcommand)]
pub enum ExportWhat {
    /// Write the cluster into the kubeconfig and make it the current one
    #[command(alias = "kubecfg")]
    Kubeconfig(ExportKubeconfig),
}

/// Credentials in a kubeconfig.
#[derive(Clone, Debug, Default, Args)]
pub struct KubeconfigCredentials {
    /// Validity of the administrator's certificate [default: 18h]
    #[arg(long, value_name = "DURATION", num_args = 0..=1, default_missing_value = "18h", require_equals = true)]
    pub admin: Option<String>,
    /// How the API is reached.
    #[command(flatten)]
    pub reach: ApiReach,
    /// The file [default: the first of $KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

/// `kctl export kubeconfig`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl export kubeconfig demo.example.com
  kctl export kubeconfig --admin=1h --kubeconfig ./kubeconfig")]
pub struct ExportKubeconfig {
    /// The cluster; instead of --name
    #[arg(value_name = "NAME")]
    pub cluster: Option<String>,
    /// The credentials.
    #[command(flatten)]
    pub credentials: KubeconfigCredentials,
}
