//! What is said about a snapshot itself, told apart from what only kept somebody from reading it: the one is a verdict, the other is tried
//! again.

use std::fmt;

/// The snapshot itself is the cause: to try again finds the same.
#[derive(Debug)]
pub(crate) struct UnusableSnapshot(pub(crate) String);

impl fmt::Display for UnusableSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the snapshot {} cannot be restored", self.0)
    }
}

/// What etcdutl says of a file whose content does not match the hash at its end, or that has none (etcd: `etcdutl/snapshot/v3_snapshot.go`,
/// `saveDB` and `copyAndVerifyDB`).
const DAMAGED: [&str; 3] = [
    "expected sha256",
    "snapshot missing hash",
    "snapshot file integrity",
];

/// True if etcdutl says that the content of the snapshot is damaged.
pub(crate) fn is_damaged(error: &anyhow::Error) -> bool {
    let said = format!("{error:#}");
    DAMAGED.iter().any(|damaged| said.contains(damaged))
}
