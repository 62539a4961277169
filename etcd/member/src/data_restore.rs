//! Restores the data of a stopped member as the log of a new etcd cluster, and puts it in the place of the old data. `etcd_rules`
//! decides when. etcd's own programs do it: a scratch etcd replays the member's log on a copy of its data, which also proves that the data is
//! usable, and `etcdutl snapshot restore` makes the new log from its database.

use super::EtcdDisk;
use super::log_files::{commit_whole_log, read_log_in};
use super::restored_log::{
    LOG_FILE, RestoreRequest, Restored, find_restored, keep_restored, restore_log, source_note,
};
use super::scratch::{ALL_KEYS, EtcdContainers, WORK};
use anyhow::{Context, bail};
use etcd_rules::{EtcdLog, LogIdentity, Marker, REVISION_BUMP};
use host::Host;
use std::fs;
use std::io::ErrorKind;
use std::time::UNIX_EPOCH;

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
    EtcdContainers::new(host, names, request.interval, &scratch).provide_image()
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
    let containers = EtcdContainers::new(host, names, request.interval, &scratch);
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
    disk.require_room(host, needed, "a recovery, which copies its data,")
}

fn copy_and_restore(
    host: &Host,
    disk: &EtcdDisk<'_>,
    containers: &EtcdContainers<'_>,
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
fn replay_log(containers: &EtcdContainers<'_>, revision: Option<u64>) -> anyhow::Result<String> {
    let content = containers.inspect(false, |gateway| gateway.count_keys(ALL_KEYS, None))?;
    if let Some(known) = revision.filter(|known| content.revision < *known) {
        bail!(
            "the data is at revision {}, but the member has reported revision {known}: data is missing. Nothing was changed; choose \
             another member with `kctl etcd recover`",
            content.revision
        );
    }
    Ok(content.text())
}
