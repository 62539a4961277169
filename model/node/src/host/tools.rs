//! The folder of tools for whoever works on the machine or in its pods.

use serde::Serialize;
use std::collections::BTreeMap;

/// A read-only folder of programs. It comes into being as a whole and is never changed: other contents have another path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tools {
    /// The folder.
    pub path: String,
    /// Programs by name, and where they come from.
    pub programs: BTreeMap<String, String>,
}
