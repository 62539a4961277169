//! Folders on an instance.

use serde::Serialize;

/// A folder with owner root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Directory {
    /// Absolute path.
    pub path: String,
    /// Mode in octal: `0755`.
    pub mode: String,
}
