//! Folders.

use serde::Serialize;

/// A folder of root's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Directory {
    /// Where.
    pub path: String,
    /// Octal: `0755`.
    pub mode: String,
}
