//! Mount propagation.

use serde::Serialize;

/// Mounts below a folder are seen by containers, and theirs by the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Propagation {
    /// The folder.
    pub path: String,
    /// Wanted: the mount it is on is shared.
    pub shared: bool,
}
