//! Restores the data of a stopped member as the log of a new etcd cluster, and puts it in the place of the old data. `node::etcd`
//! decides when. etcd's own programs do it: a scratch etcd replays the member's log on a copy of its data, which also proves that the data is
//! usable, and `etcdutl snapshot restore` makes the new log from its database.

use super::EtcdDisk;
use super::log_files::{commit_whole_log, read_log_in};
use super::scratch::{Containers, WORK};
use anyhow::{Context, bail};
use host::Host;
use node::etcd::{EtcdLog, LogIdentity, Marker, REVISION_BUMP};
use std::fs;
use std::io::ErrorKind;
use std::time::{Duration, UNIX_EPOCH};

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
}

/// The restored data.
#[derive(Clone, Debug)]
pub(super) struct Restored {
    /// The ids in its log.
    pub log: LogIdentity,
    /// What the scratch etcd said of the data, for the log; `None` if it was restored before.
    pub content: Option<String>,
}

/// Makes sure that the member's data can be restored here: the volume has room for it, and the programs are there. kubelet may never
/// have pulled the image on this instance, and `ctr run` pulls none.
pub(super) fn prepare_restore(
    host: &Host,
    disk: &EtcdDisk<'_>,
    request: &RestoreRequest,
) -> anyhow::Result<()> {
    check_room(host, disk)?;
    let names = (&*request.image, &*request.etcd);
    let scratch = disk.scratch_path();
    Containers::new(host, names, request.interval, &scratch).provide_image()
}

/// Restores the data of the member on this disk, which must not run, beside its data. What was restored before with this token is
/// used again if the member's data has not changed since.
pub(super) fn restore_data(
    host: &Host,
    disk: &EtcdDisk<'_>,
    request: &RestoreRequest,
) -> anyhow::Result<Restored> {
    let scratch = disk.scratch_path();
    let names = (&*request.image, &*request.etcd);
    let containers = Containers::new(host, names, request.interval, &scratch);
    // What an interrupted restore left behind.
    containers.remove_all();
    host.remove_folder(&scratch)?;
    let source = describe_files(host, &disk.data_path())?;
    if let Some(log) = find_restored(host, disk, &request.token, &source)? {
        return Ok(Restored { log, content: None });
    }
    check_room(host, disk)?;
    containers.provide_image()?;
    let content = copy_and_restore(host, disk, &containers, request)
        .inspect_err(|_| containers.remove_all())?;
    let log = keep_restored(host, disk, &request.token, &source)?;
    let content = Some(content);
    Ok(Restored { log, content })
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
fn source_note(restored: &str) -> String {
    format!("{restored}.source")
}

/// Moves the old data of a stopped member aside and puts the restored data in its place. Returns where the old data is kept. What was
/// done before is not repeated. Restored data that is gone is restored again as `request` says, with the same ids, while the old data is in
/// its place.
pub(super) fn use_restored(
    host: &Host,
    disk: &EtcdDisk<'_>,
    request: Option<&RestoreRequest>,
    marker: &Marker,
    restored: &LogIdentity,
) -> anyhow::Result<Option<String>> {
    let wanted = EtcdLog::Of(restored.clone());
    let folder = disk.restored_path(&marker.token);
    let mut aside = None;
    let in_place = disk.read_log(host)?;
    if in_place != wanted {
        let mut found = read_log_in(host, &folder)?;
        if let Some(request) = request
            && found == EtcdLog::Missing
            && matches!(in_place, EtcdLog::Of(_))
        {
            found = EtcdLog::Of(restore_data(host, disk, request)?.log);
        }
        if found != wanted {
            bail!(
                "the restored data of member {} of etcd cluster {} is not in {folder}: {found:?}",
                restored.member_id,
                restored.cluster_id
            );
        }
        aside = disk.set_data_aside(host)?;
        host.rename_folder(&folder, &disk.data_path())?;
    }
    // protokube may have died between the rename and the flush of the folder.
    host.sync_file_system(&disk.mount_point())?;
    disk.write_marker(host, marker)?;
    host.remove_file(&source_note(&folder))?;
    Ok(aside)
}

/// Names, sizes and times of change of the files from which a member's data is restored. They change whenever etcd writes.
fn describe_files(host: &Host, data: &str) -> anyhow::Result<String> {
    let mut lines = Vec::new();
    for below in ["member/wal", "member/snap"] {
        let folder = host.path_below_root(&format!("{data}/{below}"));
        let items = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            items => items.with_context(|| format!("could not read {}", folder.display()))?,
        };
        for item in items {
            let item = item?;
            let metadata = item.metadata()?;
            let changed = metadata.modified()?.duration_since(UNIX_EPOCH);
            let changed = changed.unwrap_or_default().as_nanos();
            let name = item.file_name();
            let name = name.to_string_lossy();
            lines.push(format!("{below}/{name} {} {changed}\n", metadata.len()));
        }
    }
    lines.sort();
    Ok(lines.concat())
}

/// Checks that the volume has room for a copy of the data and for the restored data.
fn check_room(host: &Host, disk: &EtcdDisk<'_>) -> anyhow::Result<()> {
    let needed = 2 * host.folder_bytes(&disk.data_path())? + 2 * LOG_FILE;
    let free = host.free_bytes(&disk.mount_point())?;
    if free < needed {
        bail!(
            "{} has {} MiB of free space, and a recovery needs {} MiB for copies of its data: set a larger \
             spec.etcdClusters[].etcdMembers[].volumeSize and run `kctl update cluster --yes`",
            disk.volume,
            free >> 20,
            (needed >> 20) + 1
        );
    }
    Ok(())
}

fn copy_and_restore(
    host: &Host,
    disk: &EtcdDisk<'_>,
    containers: &Containers<'_>,
    request: &RestoreRequest,
) -> anyhow::Result<String> {
    let scratch = disk.scratch_path();
    host.make_folder(&scratch, 0o700)?;
    host.copy_folder(&disk.data_path(), &format!("{scratch}/data"))?;
    commit_whole_log(host, &format!("{scratch}/data"))?;
    let content = replay_log(containers, request.revision)?;
    let database = format!("{WORK}/data/member/snap/db");
    // The file was not written by `snapshot save`, which adds a hash; the scratch etcd has just read it.
    let flags = ["--skip-hash-check"];
    restore_log(containers, &database, request, REVISION_BUMP, &flags)?;
    Ok(content)
}

/// Lets a scratch etcd apply the log to the database. Returns what it holds then.
fn replay_log(containers: &Containers<'_>, revision: Option<u64>) -> anyhow::Result<String> {
    let content = containers.read_content()?;
    if let Some(known) = revision.filter(|known| content.revision < *known) {
        bail!(
            "the data is at revision {}, but the member has reported revision {known}: data is missing. Nothing was changed; choose \
             another member with `kctl etcd recover`",
            content.revision
        );
    }
    Ok(content.text())
}

/// Makes the log of a new etcd cluster of one member from a file with a database, in the folder `restored`. All revisions are raised by
/// `bump`, and the ones below are marked as compacted.
pub(super) fn restore_log(
    containers: &Containers<'_>,
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
