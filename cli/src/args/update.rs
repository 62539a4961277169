//! `kctl update`.

use super::{KubeconfigCredentials, PlanFormat};
use clap::Args;

/// `kctl update [cluster] [NAME]`.
#[derive(Debug, Default, Args)]
#[command(
    override_usage = "kctl update [OPTIONS] [cluster] [NAME]",
    after_help = "\
Examples:
  kctl update                                  show what would change
  kctl update demo.example.com --yes           change it
  kctl update -o json --exit-code              for programs: exit code 10 if something would change"
)]
pub struct Update {
    /// The cluster; the word `cluster` before it may stand there as with kOps
    #[arg(value_name = "NAME", num_args = 0..=2)]
    pub target: Vec<String>,
    /// Make the changes
    #[arg(short, long)]
    pub yes: bool,
    /// Form of the plan
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: PlanFormat,
    /// Exit with 10 if there are changes that were not made
    #[arg(long)]
    pub exit_code: bool,
    /// Read everything anew, also what is otherwise compared through digests
    #[arg(long)]
    pub refresh: bool,
    /// Accept known kOps fields that kctl does not act on, with a warning
    #[arg(long)]
    pub allow_unsupported: bool,
    /// With --yes: write a kubeconfig [default: only with --admin]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub create_kube_config: Option<bool>,
    /// The kubeconfig's credentials.
    #[command(flatten)]
    pub credentials: KubeconfigCredentials,
}

impl Update {
    /// The cluster named on the command line.
    pub fn cluster(&self) -> Option<&str> {
        match self.target.as_slice() {
            [word, name] if word == "cluster" => Some(name),
            [word] if word == "cluster" => None,
            [name] => Some(name),
            _ => None,
        }
    }

    /// The word that is too many, if two words stand there and the first is not `cluster`.
    pub fn unexpected(&self) -> Option<&str> {
        match self.target.as_slice() {
            [word, _] if word != "cluster" => Some(word),
            _ => None,
        }
    }
}
