//! What lies where in the state store: kOps' layout under the cluster's name, and ours beside it. One listing
//! says what is there, and which version; what kctl needs is then read once.

mod acted;
mod cluster;
mod journal;
mod lock;
mod names;
mod operation;
mod operations;
mod public;
mod secrets;
mod spec_change;

pub use acted::Acted;
pub use cluster::{ClusterState, Stored, write_object};
pub use journal::StoreJournal;
pub use lock::{Lock, Seen, Standing, Terms, life, spoken};
pub use names::Keys;
pub use operation::{Ended, Operation, outdated, who};
pub use operations::{Listed, Operations};
pub use public::Public;
pub use secrets::{keyset, mint_into, mint_keyset};
pub use spec_change::SpecChange;

use crate::env;
use crate::error::{CommandError, Kind};
use aws_client::store::{Store, StoreError};
use engine::{Class, Failure};

/// A store's failure with what to do about it.
pub fn store_error(error: StoreError) -> CommandError {
    match &error {
        StoreError::Address { .. } => CommandError::new(
            Kind::Usage,
            error,
            "give --state or KCTL_STATE_STORE as s3://BUCKET, s3://BUCKET/PREFIX or file:///DIRECTORY",
        ),
        StoreError::Key(_) => CommandError::new(
            Kind::Usage,
            error,
            "a cluster's name is a DNS name such as demo.example.com",
        ),
        StoreError::Conflict { .. } => CommandError::new(
            Kind::Precondition,
            error,
            "somebody else was faster: look at what is there now, and repeat the command",
        ),
        StoreError::Fenced { .. } => CommandError::new(
            Kind::Precondition,
            error,
            "see who works on it with `kctl lock status`, and repeat the command",
        ),
        StoreError::NoBucket { .. } => CommandError::new(
            Kind::Usage,
            error,
            "check the name in --state or KCTL_STATE_STORE",
        ),
        // An answer that did not come, most likely of a read: nothing is to be looked for.
        StoreError::S3 { source, .. } if source.class == Class::Unknown => CommandError::new(
            Kind::Failed,
            error,
            "check the network and AWS_* settings, and try again",
        ),
        // S3 says no more than that of a bucket that is another account's.
        StoreError::Denied { action, source, .. }
            if !action.contains(":Get") && !action.contains(":List") =>
        {
            let hint = format!(
                "{}; if the bucket is another account's on purpose, set {} to that account",
                aws_hint(source),
                env::STATE_OWNER
            );
            CommandError::new(Kind::Failed, error, hint)
        }
        StoreError::Denied { source, .. } | StoreError::S3 { source, .. } => {
            let failure = source.clone();
            CommandError::new(Kind::Failed, error, aws_hint(&failure))
        }
        StoreError::File { .. } => CommandError::new(
            Kind::Failed,
            error,
            "check the directory and who may write there",
        ),
    }
}

/// What to do about a failed call.
pub fn aws_hint(failure: &Failure) -> String {
    let known = failure.hint.clone();
    known.unwrap_or_else(|| {
        "check credentials (`aws sts get-caller-identity`), region and network, and try again"
            .to_owned()
    })
}

/// The error of a name that no cluster of the store has; `all` are those that it has.
pub fn no_cluster(name: &str, url: &str, all: &[String]) -> CommandError {
    let near = spec::read::nearest::nearest(name, all.iter().map(String::as_str));
    let hint = match near {
        Some(near) => format!("did you mean {near}?"),
        None => {
            "see which there are with `kctl get clusters`, or choose another store with --state"
                .to_owned()
        }
    };
    CommandError::usage(format!("there is no cluster {name} in {url}"), hint)
}

/// Names of all clusters in the store, sorted.
pub async fn clusters(store: &Store) -> Result<Vec<String>, CommandError> {
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
