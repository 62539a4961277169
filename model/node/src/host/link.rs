//! Symbolic links.

use serde::Serialize;

/// A symbolic link, replaced by renaming: there is never no link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Where.
    pub path: String,
    /// What it points to, as written in it.
    pub target: String,
}
