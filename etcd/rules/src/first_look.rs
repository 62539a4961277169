//! Decides whether a file system that was looked at without a change may be checked, mounted and written to. What such a look shows
//! lacks what is in the journal only, so the member's own volume is not refused by what it shows.

use super::content::{EtcdLog, FileSystemContent, Marker, VolumeContent};
use super::decide::decide_step;
use super::log::LogIdentity;
use super::own_member::OwnMember;
use super::record::FormationRecord;
use super::step::FormationStep;
use super::volume_owner::check_owner;

/// What a look showed that changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstLook {
    pub content: VolumeContent,
    /// False if the content may differ from what it shows: the journal was not replayed, or something could not be read.
    pub is_certain: bool,
}

/// True if the file system may be opened: its marker names this member and the record accepts it; or the record says that this member
/// has written to the volume, and the look is not certain; or it is empty and the next step writes to it.
pub fn may_open(own: &OwnMember<'_>, record: Option<&FormationRecord>, first: &FirstLook) -> bool {
    match &first.content {
        VolumeContent::FileSystem(FileSystemContent::Marked { marker, .. }) => {
            check_owner(own, marker).is_ok() && is_accepted(own, record, marker, &first.content)
        }
        VolumeContent::FileSystem(_) | VolumeContent::Damaged(_) if !first.is_certain => {
            record.is_some_and(|record| has_written(own, record))
                || writes_to_empty(own, record, first)
        }
        _ => writes_to_empty(own, record, first),
    }
}

/// True if an instance may open, after a reboot and without the record, the volume from which it ran. `is_by_id`: the device was found
/// by the volume's id and not by a device name, which may lead to another disk by now.
pub fn may_reopen(
    cluster: &str,
    etcd: &str,
    volume: &str,
    first: &FirstLook,
    is_by_id: bool,
) -> bool {
    match &first.content {
        VolumeContent::FileSystem(FileSystemContent::Marked { marker, .. }) => {
            [&marker.cluster, &marker.etcd, &marker.volume].map(String::as_str)
                == [cluster, etcd, volume]
        }
        VolumeContent::FileSystem(_) | VolumeContent::Damaged(_) => !first.is_certain && is_by_id,
        _ => false,
    }
}

fn writes_to_empty(
    own: &OwnMember<'_>,
    record: Option<&FormationRecord>,
    first: &FirstLook,
) -> bool {
    let empty = VolumeContent::FileSystem(FileSystemContent::Nothing);
    first.content == empty && { decide_step(own, record, &first.content).writes_to_volume() }
}

/// True if the record does not reject the marker: the member would go on with the log that the marker tells of.
fn is_accepted(
    own: &OwnMember<'_>,
    record: Option<&FormationRecord>,
    marker: &Marker,
    content: &VolumeContent,
) -> bool {
    let expected = VolumeContent::FileSystem(FileSystemContent::Marked {
        marker: marker.clone(),
        log: EtcdLog::Of(expected_log(own, record, marker)),
    });
    [content, &expected].into_iter().any(|content| {
        match decide_step(own, record, content) {
            FormationStep::Refuse(_) | FormationStep::Ask(_) => false,
            // Others are waited for, and the volume may be a copy.
            FormationStep::Wait(_) => marker.volume == own.volume,
            _ => true,
        }
    })
}

fn expected_log(
    own: &OwnMember<'_>,
    record: Option<&FormationRecord>,
    marker: &Marker,
) -> LogIdentity {
    let recorded_cluster = record.and_then(|record| record.generation.cluster_id.as_ref());
    let recorded = record.and_then(|record| record.members.get(own.member));
    let recorded_id = recorded.and_then(|member| member.member_id.as_ref());
    let known = |said: &Option<String>, recorded: Option<&String>| {
        said.as_ref().or(recorded).cloned().unwrap_or_default()
    };
    LogIdentity {
        cluster_id: known(&marker.cluster_id, recorded_cluster),
        member_id: known(&marker.member_id, recorded_id),
    }
}

/// True if the record says that this member has written to the volume, or runs or ran from it. A volume that is only named, as all
/// are while a cluster is being formed, may hold anything.
fn has_written(own: &OwnMember<'_>, record: &FormationRecord) -> bool {
    let now = record.members.get(own.member).into_iter();
    let mut known = now.chain(record.retired_members(own.member));
    known.any(|of| of.volume == own.volume && (of.blank || of.member_id.is_some()))
}
