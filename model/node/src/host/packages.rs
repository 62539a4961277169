//! Packages of the distribution.

use crate::config::Distribution;
use serde::Serialize;

/// Packages that are installed together. What a node cannot be without is apart from what is only good to have, so that
/// a mirror that lacks the second keeps no machine out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Packages {
    /// `needed`, `upkeep`, `user`.
    pub name: String,
    /// Sorted names.
    pub packages: Vec<String>,
    /// Whose package tool installs them.
    #[serde(skip)]
    pub distribution: Distribution,
}
