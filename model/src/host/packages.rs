//! Packages of the distribution.

use serde::Serialize;

/// Packages that are installed. All in one: package tools know one caller at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Packages {
    /// Sorted names.
    pub names: Vec<String>,
}
