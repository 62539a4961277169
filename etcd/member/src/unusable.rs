//! What is said about a snapshot itself, told apart from what only kept somebody from reading it: the one is a verdict, the other is tried
//! again.

use crate::changes::is_of_changes;
use aws_client::packed::PackError;
use aws_client::store::StoreError;
use etcd_rules::backup::ManifestError;
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

/// The error as a verdict, if it says something about the snapshot of this name.
pub(crate) fn judge_snapshot(error: anyhow::Error, name: &str) -> anyhow::Error {
    match is_of_snapshot(&error) && !error.is::<UnusableSnapshot>() {
        true => error.context(UnusableSnapshot(name.to_owned())),
        false => error,
    }
}

/// True if the error says something about the snapshot: what lies in the store is missing, damaged, or of something else, or what a scratch
/// etcd finds is not what it should be. A program that does not run or says nothing, a store that does not answer, or too little room says
/// nothing about it.
fn is_of_snapshot(error: &anyhow::Error) -> bool {
    let is_too_large = |error: &StoreError| matches!(error, StoreError::TooLarge { .. });
    error.is::<ManifestError>()
        || is_of_changes(error)
        || error
            .downcast_ref::<PackError>()
            .is_some_and(PackError::is_of_content)
        || error.downcast_ref().is_some_and(is_too_large)
        || is_damaged(error)
}

/// True if etcdutl says that the content of the snapshot is damaged.
fn is_damaged(error: &anyhow::Error) -> bool {
    let said = format!("{error:#}");
    DAMAGED.iter().any(|damaged| said.contains(damaged))
}
