//! The cluster's objects in the state store: kOps' layout and kctl's own objects beside it. One listing gives keys and
//! versions; kctl then reads each object that it needs once.

mod cluster;
mod group_texts;
mod journal;
mod keysets;
mod last_operation;
mod lock;
mod object_digests;
mod operation;
mod operations;
mod own_files;
mod public_keys;
mod spec_change;
mod store_keys;

pub use cluster::{ClusterState, StoredObject, write_object};
pub use journal::StoreJournal;
pub use keysets::{load_keyset, load_versioned, mint_and_store, mint_keyset, store_keyset};
pub use last_operation::LastOperation;
pub use lock::{
    ClusterLock, LockEvent, LockOptions, LockState, ObservedLock, duration_words, lock_life,
    locked_error,
};
pub use object_digests::ObjectDigests;
pub use operation::{Operation, StepResult, first_operation, outdated_keys, user_at_host};
pub use operations::{ListedOperation, OperationLog};
pub use own_files::{OwnFiles, unreadable_error, write_own_objects};
pub use public_keys::PublicKeys;
pub use spec_change::SpecChange;
pub use store_keys::{LockKind, StoreKeys};

use crate::env;
use crate::error::{CommandError, ErrorKind};
use aws_client::store::{Store, StoreError};
use engine::{Class, Failure};

/// The error of a read or a write of something in a store: of the store itself, or of what lies there. `hint`: what to do about that.
pub fn stored_error(error: anyhow::Error, hint: &str) -> CommandError {
    match error.downcast::<StoreError>() {
        Ok(error) => store_error(error),
        Err(error) => CommandError::new(ErrorKind::Precondition, error, hint),
    }
}

/// The command error of a store failure, with a next step.
pub fn store_error(error: StoreError) -> CommandError {
    match &error {
        StoreError::Address { .. } => CommandError::new(
            ErrorKind::Usage,
            error,
            "give --state or KCTL_STATE_STORE as s3://BUCKET, s3://BUCKET/PREFIX or file:///DIRECTORY",
        ),
        StoreError::Key(_) => CommandError::new(
            ErrorKind::Usage,
            error,
            "a cluster's name is a DNS name such as demo.example.com",
        ),
        StoreError::Conflict { .. } => CommandError::new(
            ErrorKind::Precondition,
            error,
            "another process changed it first: look at the current state, and repeat the command",
        ),
        StoreError::Fenced { .. } => CommandError::new(
            ErrorKind::Precondition,
            error,
            "see who works on it with `kctl lock status`, and repeat the command",
        ),
        StoreError::NoBucket { .. } => CommandError::new(
            ErrorKind::Usage,
            error,
            "check the name in --state or KCTL_STATE_STORE",
        ),
        // No response, most likely to a read: there is nothing to check in the store.
        StoreError::S3 { source, .. } if source.class == Class::Unknown => CommandError::new(
            ErrorKind::Failed,
            error,
            "check the network and AWS_* settings, and try again",
        ),
        // S3 gives the same answer for a bucket of another account, which reads ask for only if the account was named.
        StoreError::Denied { action, source, .. }
            if !(action.contains(":Get") || action.contains(":List"))
                || env::first_variable(&[env::STATE_OWNER]).is_some() =>
        {
            let hint = format!(
                "{}; if the bucket is another account's on purpose, set {} to that account",
                aws_hint(source),
                env::STATE_OWNER
            );
            CommandError::new(ErrorKind::Failed, error, hint)
        }
        StoreError::Denied { source, .. } | StoreError::S3 { source, .. } => {
            let failure = source.clone();
            CommandError::new(ErrorKind::Failed, error, aws_hint(&failure))
        }
        StoreError::TooLarge { .. } => CommandError::new(
            ErrorKind::Failed,
            error,
            "somebody has replaced the object: use another one, and see who may write there",
        ),
        StoreError::File { .. } => CommandError::new(
            ErrorKind::Failed,
            error,
            "check the directory and who may write there",
        ),
    }
}

/// The next step after a failed AWS call.
pub fn aws_hint(failure: &Failure) -> String {
    let known = failure.hint.clone();
    known.unwrap_or_else(|| {
        "check credentials (`aws sts get-caller-identity`), region and network, and try again"
            .to_owned()
    })
}

/// The error for an unknown cluster name. `all` are the names in the store.
pub fn no_cluster_error(name: &str, url: &str, all: &[String]) -> CommandError {
    let near = spec::read::nearest::nearest_name(name, all.iter().map(String::as_str));
    let hint = match near {
        Some(near) => format!("did you mean {near}?"),
        None => {
            "see which there are with `kctl get clusters`, or choose another store with --state"
                .to_owned()
        }
    };
    CommandError::usage_error(format!("there is no cluster {name} in {url}"), hint)
}

/// Names of all clusters in the store, sorted.
pub async fn cluster_names(store: &Store) -> Result<Vec<String>, CommandError> {
    let entries = store.list("", None).await.map_err(store_error)?;
    let name = |key: &str| {
        key.strip_suffix("/config")
            .filter(|name| !name.contains('/'))
            .map(str::to_owned)
    };
    Ok(entries
        .iter()
        .filter_map(|entry| name(&entry.key))
        .collect())
}
