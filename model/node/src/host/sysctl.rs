//! Parameters of the running kernel.

use serde::Serialize;

/// A parameter and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sysctl {
    /// `net.ipv4.ip_forward`.
    pub key: String,
    /// The value; blanks between several are one blank each.
    pub value: String,
    /// The user asked for it: a kernel that does not take it is an error. Ours are left out there with a line.
    pub required: bool,
}
