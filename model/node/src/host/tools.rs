//! The folder of tools for operators and pods.

use serde::Serialize;
use std::collections::BTreeMap;

/// A read-only folder of programs. It is created as a whole and never changed; other content has another path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tools {
    /// Absolute path of the folder.
    pub path: String,
    /// Paths of the copied programs by name.
    pub programs: BTreeMap<String, String>,
}
