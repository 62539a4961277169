//! Backups of etcd: names and content of what lies in a backup store, when a snapshot is taken, and which are deleted. protokube takes
//! them, `kctl etcd snapshot` lists and asks for them.

mod changes;
mod changes_problems;
mod drilled;
mod found;
mod listing;
mod manifest;
mod metrics;
mod name;
mod owner;
mod problems;
mod retention;
mod schedule;
mod state;

pub use changes::{
    ChainEnd, ChainGap, ChainNames, ChainStep, ChangesBatch, ChangesError, ChangesFailure,
    ChangesPart, ChangesState, ChosenPoint, CollectedChanges, PART_FORMAT, PART_LIMIT, PartHeader,
    ReadPart, RestorePoint, RestoreTime, WatchedEvent, check_follows, choose_chains,
    choose_restore_point, next_chain_step,
};
pub use changes_problems::{
    ForeignChain, NewestRestorable, find_changes_problems, newest_restorable,
};
pub use drilled::choose_drilled;
pub use found::{FoundSnapshot, Unread, newest_verified, sort_newest_first};
pub use listing::{StoredPart, StoredSnapshot, group_snapshots};
pub use manifest::{
    IMPORTED, MANIFEST_FORMAT, MANIFEST_LIMIT, MOST_BYTES, ManifestError, SealedClusterState,
    SnapshotManifest, VerifiedSnapshot,
};
pub use metrics::{ObservedBackups, render_backup_metrics};
pub use name::{
    CLUSTER_STATE_FILE, CLUSTER_STATE_KEYS, DATA_FILE, MANIFEST_FILE, META_FILE, MOST_PARTS,
    changes_key, changes_prefix, check_asked_name, check_snapshot_name, cluster_state_key,
    data_key, is_scheduled, manifest_key, meta_key, scheduled_name,
};
pub use owner::{OWNER_KEY, OWNER_LIMIT, StoreOwner};
pub use problems::{StoredBackups, find_backup_problems};
pub use retention::{check_extent, choose_deletions, find_successors};
pub use schedule::{
    CLAIM_LIFE, ScheduleView, begin_snapshot, end_snapshot, fail_snapshot, is_due, renew_claim,
};
pub use state::{
    BACKUP_STATE_LIMIT, BackupClaim, BackupDrill, BackupFailure, BackupState, LastSnapshot,
    UnfinishedDrill, backup_state_key,
};
