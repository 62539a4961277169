//! Checks changes of etcd clusters in the spec against the formation record and the running versions.

mod members;
mod versions;

pub use members::{FormedMembers, UnwantedMember, check_members};
pub use versions::{RunningVersion, check_version, is_next_minor};
