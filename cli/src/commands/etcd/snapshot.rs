//! `kctl etcd snapshot`: takes, lists, verifies, downloads, imports, deletes and prunes snapshots in the backup store of an etcd cluster,
//! and brings the state of a cluster that lies beside them back into a state store.

mod asked;
mod backup_store;
mod delete;
mod download;
mod import;
mod import_state;
mod list;

pub use asked::{drill, take_snapshot, timed_name};
pub use backup_store::{BackupStore, failed_store};

use crate::args::SnapshotWhat;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorKind, Outcome};

/// Runs a command of `kctl etcd snapshot`.
pub async fn run(what: &SnapshotWhat, session: &Session<'_>) -> Result<Outcome, CommandError> {
    match what {
        SnapshotWhat::Save(args) => asked::save(args, session).await,
        SnapshotWhat::Verify(args) => asked::verify(args, session).await,
        SnapshotWhat::List(args) => list::run(args, session).await,
        SnapshotWhat::Download(args) => download::run(args, session).await,
        SnapshotWhat::Import(args) => import::run(args, session).await,
        SnapshotWhat::ImportState(args) => import_state::run(args, session).await,
        SnapshotWhat::Delete(args) => delete::delete(args, session).await,
        SnapshotWhat::Prune(args) => delete::prune(args, session).await,
    }
}

/// A refusal with the list as the next step.
fn refuse(why: impl Into<String>) -> CommandError {
    CommandError::from_message(
        ErrorKind::Precondition,
        why,
        "see the snapshots: `kctl etcd snapshot list`",
    )
}
