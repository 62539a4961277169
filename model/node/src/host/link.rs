//! Symbolic links on an instance.

use serde::Serialize;

/// A symbolic link. It is replaced by renaming, so it never disappears in between.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Absolute path of the link.
    pub path: String,
    /// Target as stored in the link.
    pub target: String,
}
