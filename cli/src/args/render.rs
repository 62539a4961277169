//! `kctl render`.

use clap::Args;
use std::path::PathBuf;

/// `kctl render`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl render -f cluster.yaml --out rendered
  kctl render -f cluster.yaml --out rendered --facts facts.yaml
  kctl create cluster demo.example.com --zones eu-west-1a --dry-run \\
      | kctl render -f - --out rendered")]
pub struct Render {
    /// A file of Cluster, InstanceGroup and SSHCredential objects, and of objects that are applied to the cluster, in YAML; `-` is stdin; repeatable
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// The folder; must be empty, not there, or from an earlier render
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Facts about the account instead of made-up ones: a YAML file, as in docs/operations/render.md
    #[arg(long, value_name = "FILE")]
    pub facts: Option<PathBuf>,
    /// Accept known kOps fields that kctl does not act on, with a warning
    #[arg(long)]
    pub allow_unsupported: bool,
}
