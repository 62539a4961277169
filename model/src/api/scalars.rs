//! Scalars of the spec that are kept as written.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A Kubernetes quantity as written: `100m`, `170Mi`, `3.14`.
pub type Quantity = String;

/// A Go duration as written: `1m0s`, `15m`.
pub type Duration = String;

/// A number, or text such as a percentage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrString {
    /// A number.
    Int(i64),
    /// Anything else, as written.
    String(String),
}

impl fmt::Display for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(f),
            Self::String(text) => f.write_str(text),
        }
    }
}

/// Text that is never shown: `Debug` hides it, only serialization reveals it.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}
