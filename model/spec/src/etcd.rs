//! What an edit of etcd clusters may be, by what was formed and what runs.

mod edits;
mod versions;

pub use edits::{Formed, edits};
pub use versions::{Runs, version_edit};
