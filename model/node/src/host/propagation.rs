//! Mount propagation of folders.

use serde::Serialize;

/// Mounts below a folder propagate between the instance and containers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Propagation {
    /// Absolute path of the folder.
    pub path: String,
    /// True if the mount that contains the folder is shared; always true in the desired state.
    pub shared: bool,
}
