//! The log of a new etcd cluster, made by `etcdutl snapshot restore` from a database, and kept beside the member's data until it takes its
//! place.

use super::EtcdDisk;
use super::log_files::read_log_in;
use super::scratch::{EtcdContainers, WORK};
use anyhow::bail;
use etcd_rules::{EtcdLog, LogIdentity};
use host::Host;
use std::time::Duration;

/// etcd preallocates files of its log with this size (`wal.SegmentSizeBytes`), and may do so twice here.
pub(crate) const LOG_FILE: u64 = 64 << 20;

/// Mode of the note of what the data was restored from.
const NOTE_MODE: u32 = 0o600;

/// The member that the restored data belongs to.
#[derive(Clone, Debug)]
pub(super) struct RestoreRequest {
    /// Image of the member's pod.
    pub image: String,
    /// Name of the etcd cluster: `main`.
    pub etcd: String,
    /// Name of the member in etcd: `etcd-a`.
    pub name: String,
    pub peer_url: String,
    /// `initial-cluster-token`, from which etcd computes the ids of cluster and member.
    pub token: String,
    /// The data must not be older than this revision.
    pub revision: Option<u64>,
    /// How long to wait between two looks at the scratch etcd, at most a second.
    pub interval: Duration,
    /// Path of the API server's EncryptionConfiguration, if it has one.
    pub encryption_config: Option<String>,
}

/// The restored data.
#[derive(Clone, Debug)]
pub(super) struct Restored {
    /// The ids in its log.
    pub log: LogIdentity,
    /// What the scratch etcd said of the data, for the log; `None` if it was restored before.
    pub content: Option<String>,
}

/// The log that was restored before with this token from this source. One from another source is removed.
pub(super) fn find_restored(
    host: &Host,
    disk: &EtcdDisk<'_>,
    token: &str,
    source: &str,
) -> anyhow::Result<Option<LogIdentity>> {
    let restored = disk.restored_path(token);
    let EtcdLog::Of(log) = read_log_in(host, &restored)? else {
        return Ok(None);
    };
    if host.read_text(&source_note(&restored))?.as_deref() == Some(source) {
        // protokube may have died between the rename and the flush of the folder.
        host.sync_file_system(&disk.mount_point())?;
        return Ok(Some(log));
    }
    host.remove_folder(&restored)?;
    Ok(None)
}

/// Puts what was restored in the scratch folder beside the member's data.
pub(super) fn keep_restored(
    host: &Host,
    disk: &EtcdDisk<'_>,
    token: &str,
    source: &str,
) -> anyhow::Result<LogIdentity> {
    let (restored, scratch) = (disk.restored_path(token), disk.scratch_path());
    host.write_changed(&source_note(&restored), source, NOTE_MODE)?;
    // Whoever reads the record relies on the restored files.
    host.sync_file_system(&disk.mount_point())?;
    host.rename_folder(&format!("{scratch}/restored"), &restored)?;
    host.remove_folder(&scratch)?;
    match read_log_in(host, &restored)? {
        EtcdLog::Of(log) => Ok(log),
        other => bail!("etcdutl made no log in {restored}: {other:?}"),
    }
}

/// Path of the note of what the folder was restored from.
pub(super) fn source_note(restored: &str) -> String {
    format!("{restored}.source")
}

/// Makes the log of a new etcd cluster of one member from a file with a database, in the folder `restored`. All revisions are raised by
/// `bump`, and the ones below are marked as compacted.
pub(super) fn restore_log(
    containers: &EtcdContainers<'_>,
    file: &str,
    request: &RestoreRequest,
    bump: u64,
    flags: &[&str],
) -> anyhow::Result<()> {
    let RestoreRequest {
        name,
        peer_url,
        token,
        ..
    } = request;
    let (bump, initial_cluster) = (bump.to_string(), format!("{name}={peer_url}"));
    let data = format!("{WORK}/restored");
    let arguments = [
        "--bump-revision",
        &bump,
        "--mark-compacted",
        "--data-dir",
        &data,
        "--name",
        name,
        "--initial-cluster",
        &initial_cluster,
        "--initial-advertise-peer-urls",
        peer_url,
        "--initial-cluster-token",
        token,
    ];
    containers.run_restore(&[&[file], flags, &arguments].concat())
}
