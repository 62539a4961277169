//! Puts restored data in the place of a member's old data. `node::etcd` decides when.

use super::EtcdDisk;
use super::disk::read_log_in;
use anyhow::bail;
use host::Host;
use node::etcd::{EtcdLog, LogIdentity, Marker};

/// Moves the old data of a stopped member aside and puts the restored data in its place. Returns where the old data is kept. What was
/// done before is not repeated.
pub(super) fn use_restored(
    host: &Host,
    disk: &EtcdDisk<'_>,
    marker: &Marker,
    restored: &LogIdentity,
) -> anyhow::Result<Option<String>> {
    let wanted = EtcdLog::Of(restored.clone());
    let mut aside = None;
    if disk.read_log(host)? != wanted {
        let folder = disk.restored_path(&marker.token);
        let found = read_log_in(host, &folder)?;
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
    disk.write_marker(host, marker)?;
    Ok(aside)
}
