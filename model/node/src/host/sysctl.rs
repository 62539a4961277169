//! Kernel parameters.

use serde::Serialize;

/// A kernel parameter and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sysctl {
    /// Name: `net.ipv4.ip_forward`.
    pub key: String,
    /// Value; several values are separated by one blank each.
    pub value: String,
    /// True if the parameter is from the spec: then it is an error if the kernel rejects it. A rejected parameter of kctl's own is
    /// only logged.
    pub required: bool,
}
