//! Backups of etcd: a snapshot of the local member is written to the root disk, verified by etcd's own programs, and stored in the backup
//! store. `etcd_rules::backup` decides when, and which are deleted.

mod cluster_state;
mod drill;
mod encrypted_secret;
mod role;
mod root_disk;
mod settings;
mod source;
mod take;
mod verify;
mod work_folder;

pub use role::{BackupRole, ObservedByEtcd};
pub use settings::read_settings;
pub use source::{KeyHash, KeysAt, SnapshotSource};
pub use take::SnapshotTaker;

pub(crate) use cluster_state::unseal_cluster_state;
pub(crate) use root_disk::check_room;
pub(crate) use take::describe_taken;
pub(crate) use verify::read_secrets;
