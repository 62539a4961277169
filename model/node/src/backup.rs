//! Backups of etcd: names and content of what lies in a backup store, when a snapshot is taken, and which are deleted. protokube takes
//! them, `kctl etcd snapshot` lists and asks for them.

mod manifest;
mod metrics;
mod name;
mod retention;
mod settings;
mod state;
mod tick;

pub use manifest::{
    MANIFEST_FORMAT, MANIFEST_LIMIT, SealedClusterState, SnapshotManifest, VerifiedSnapshot,
};
pub use metrics::{ObservedBackups, render_backup_metrics};
pub use name::{
    CLUSTER_STATE_FILE, DATA_FILE, MANIFEST_FILE, META_FILE, check_snapshot_name,
    cluster_state_key, data_key, is_scheduled, manifest_key, meta_key, scheduled_name,
};
pub use retention::{Retention, StoredSnapshot, choose_deletions, group_snapshots};
pub use settings::{
    BACKUP_SETTINGS_KEY, BACKUP_SETTINGS_LIMIT, BackupSettings, EtcdBackupSettings, parse_period,
};
pub use state::{
    BACKUP_STATE_LIMIT, BackupClaim, BackupDrill, BackupFailure, BackupState, LastSnapshot,
    backup_state_key,
};
pub use tick::{CLAIM_LIFE, TickView, begin_snapshot, end_snapshot, fail_snapshot, is_due};
