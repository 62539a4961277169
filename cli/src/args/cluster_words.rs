//! `[cluster] [NAME]`: kOps' users write the word `cluster` before the name.

use clap::Args;

/// The words that name a cluster.
#[derive(Clone, Debug, Default, Args)]
pub struct ClusterWords {
    /// The cluster; the word `cluster` before it may stand there as with kOps
    #[arg(value_name = "NAME", num_args = 0..=2)]
    target: Vec<String>,
}

impl ClusterWords {
    /// The cluster named on the command line.
    pub fn cluster(&self) -> Option<&str> {
        match self.target.as_slice() {
            [word, name] if word == "cluster" => Some(name),
            [word] if word == "cluster" => None,
            [name] => Some(name),
            _ => None,
        }
    }

    /// The word that is too many: the second, if the first is not `cluster`.
    pub fn unexpected(&self) -> Option<&str> {
        match self.target.as_slice() {
            [word, extra] if word != "cluster" => Some(extra),
            _ => None,
        }
    }
}
