//! Packages of the distribution on an instance.

use crate::config::Distribution;
use serde::Serialize;

/// Packages that are installed together. Required and optional packages are separate, so that a mirror without the optional ones
/// does not keep an instance from joining.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Packages {
    /// Name of the set: `needed`, `upkeep`, `user`.
    pub name: String,
    /// Names of the packages, sorted.
    pub packages: Vec<String>,
    /// Distribution, which determines the package tool.
    #[serde(skip)]
    pub distribution: Distribution,
}
