//! What the commands `protokube etcd-backup` do: snapshots of the local member of etcd in a folder of this instance, in S3, and from other
//! control planes. They need the instance and its files, and neither the Kubernetes API nor, but for S3, AWS.

mod delete;
mod download;
mod extract;
mod local;
mod peer;
mod save;
mod serve;

pub use delete::delete_snapshot_named;
pub use download::{SnapshotOrigin, download_snapshot};
pub use extract::extract_cluster_state;
pub use local::LocalSnapshots;
pub use peer::{PeerAccess, SNAPSHOT_PORT, describe_pem_error};
pub use save::{RegularSaves, SnapshotSaver};
pub use serve::{ServeLimits, serve_snapshot_on};
