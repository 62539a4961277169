//! Backups of etcd: a snapshot of the local member is written to the root disk, verified by etcd's own programs, and stored in the backup
//! store. `node::backup` decides when, and which are deleted.

mod asked;
mod prune;
mod role;
mod source;
mod take;
mod verify;

pub use role::BackupRole;
pub use source::{KeyHash, SnapshotSource};
pub use take::SnapshotTaker;
