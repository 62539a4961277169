//! `[cluster] [NAME]`: kOps has the word `cluster` before the name, so kctl accepts it.

use clap::Args;

/// The words that name a cluster.
#[derive(Clone, Debug, Default, Args)]
pub struct ClusterWords {
    /// The cluster; the word `cluster` before it is accepted
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

    /// A second word, if the first one is not `cluster`.
    pub fn unexpected_word(&self) -> Option<&str> {
        match self.target.as_slice() {
            [word, extra] if word != "cluster" => Some(extra),
            _ => None,
        }
    }
}
