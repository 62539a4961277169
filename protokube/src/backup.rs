//! Backups of etcd: a snapshot of the local member is written to the root disk, verified by etcd's own programs, and stored in the backup
//! store. `etcd_rules::backup` decides when, and which are deleted.

mod backup_store;
mod cluster_state;
mod drill;
mod encrypted_secret;
mod prune;
mod role;
mod root_disk;
mod settings;
mod source;
mod state_object;
mod take;
mod verify;
mod work_folder;

pub use role::{BackupRole, ObservedByEtcd};
pub use source::{KeyHash, KeysAt, SnapshotSource};
pub use take::SnapshotTaker;

pub(crate) use backup_store::{
    check_owner, claim_store, delete_snapshot, list_snapshots, read_manifest, require_manifest,
};
pub(crate) use cluster_state::unseal_cluster_state;
pub(crate) use prune::{Extent, prune_snapshots};
pub(crate) use root_disk::check_room;
pub(crate) use settings::read_settings;
pub(crate) use take::describe_taken;
pub(crate) use verify::read_secrets;
