//! Backups of etcd: a snapshot of the local member is written to the root disk, verified by etcd's own programs, and stored in the backup
//! store. `node::backup` decides when, and which are deleted.

mod asked;
mod cluster_state;
mod drill;
mod prune;
mod role;
mod source;
mod stored;
mod stored_secret;
mod stored_state;
mod take;
mod verify;

pub use role::{BackupRole, ObservedByEtcd};
pub use source::{KeyHash, SnapshotSource};
pub use take::SnapshotTaker;

pub(crate) use cluster_state::unseal_cluster_state;
pub(crate) use prune::prune_snapshots;
pub(crate) use role::describe_taken;
pub(crate) use stored::{delete_snapshot, list_snapshots, read_manifest, require_manifest};
