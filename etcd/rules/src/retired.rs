//! Recognizes data that must not run any more: of a member that was stopped for a recovery, or of an etcd cluster that was given up.

use super::content::{EtcdLog, FileSystemContent, Marker, VolumeContent};
use super::log::LogIdentity;
use super::own_member::{Formed, OwnMember};
use super::record::{FormationRecord, record_key};
use super::step::FormationStep;
use super::volume_owner::check_owner;
/// etcd's id of the cluster whose data a volume holds, hex.
pub(super) fn cluster_of(content: &VolumeContent) -> Option<&String> {
    let VolumeContent::FileSystem(FileSystemContent::Marked { marker, log }) = content else {
        return None;
    };
    let of_log = match log {
        EtcdLog::Of(log) | EtcdLog::Shorter { log, .. } => Some(&log.cluster_id),
        _ => None,
    };
    marker.cluster_id.as_ref().or(of_log)
}

/// True if the data on the volume of this member must not run, whatever is decided next: the member was stopped for a recovery, or
/// its cluster was given up.
pub fn must_stay_stopped(
    member: &str,
    record: Option<&FormationRecord>,
    content: &VolumeContent,
) -> bool {
    let VolumeContent::FileSystem(FileSystemContent::Marked { marker, .. }) = content else {
        return false;
    };
    if marker.stopped.is_some() {
        return true;
    }
    let Some(record) = record else { return false };
    let id = cluster_of(content);
    let is_of_now = id.is_none_or(|id| Some(id.as_str()) == record.cluster_id());
    let next = record.next.as_ref().filter(|_| is_of_now);
    next.is_some_and(|next| next.stopped.contains_key(member))
        || id.is_some_and(|id| has_given_up(record, marker, id))
}

/// True if the data with this marker, of the etcd cluster with this id, is of one that was given up, be it before it was formed.
pub(super) fn has_given_up(record: &FormationRecord, marker: &Marker, cluster_id: &str) -> bool {
    record.has_given_up(cluster_id) || record.has_given_up(&marker.token)
}

/// True if a member of this name that never runs again had this volume in the recorded cluster, and the data may be its.
fn was_retired_on(own: &OwnMember<'_>, record: &FormationRecord, content: &VolumeContent) -> bool {
    let is_of_now = cluster_of(content).is_none_or(|id| Some(id.as_str()) == record.cluster_id());
    let retired = record.cluster_id().and_then(|id| record.retired.get(id));
    let members = retired.and_then(|retired| retired.members.get(own.member));
    let mut members = members.into_iter().flatten();
    is_of_now && members.any(|one| one.volume == own.volume)
}

/// The volume has data of an etcd cluster that the record does not know, and that the state store shows, if somebody has looked: the record is
/// older than the data.
pub(super) fn find_newer_formed(
    own: &OwnMember<'_>,
    formed: &Formed<'_>,
    content: &VolumeContent,
) -> Option<FormationStep> {
    let is_shown = |id: &String| own.formed.is_none_or(|formed| formed.contains_key(id));
    cluster_of(content).filter(|id| is_shown(id))?;
    find_newer_data(own, formed, content)
}

/// The volume has data of an etcd cluster that the record does not know.
pub(super) fn find_newer_data(
    own: &OwnMember<'_>,
    formed: &Formed<'_>,
    content: &VolumeContent,
) -> Option<FormationStep> {
    let Formed {
        record, cluster_id, ..
    } = formed;
    let (marker, _) = content.marked()?;
    let other = cluster_of(content).filter(|other| other != cluster_id)?;
    let is_own = check_owner(own, marker).is_ok() && marker.volume == own.volume;
    if !is_own || record.has_given_up(other) || record.has_given_up(&marker.token) {
        return None;
    }
    Some(FormationStep::Ask(format!(
        "the record says that etcd {} is cluster {cluster_id}, but {} holds data of cluster {other}, which it does not know: an older version \
         of the record was restored. Restore the newest version of {} (from object versions of the bucket)",
        own.etcd,
        own.volume,
        record_key(own.etcd),
    )))
}

/// Why a member is not started whose marker says that it was stopped.
pub(super) fn stopped_for_good(own: &OwnMember<'_>) -> String {
    format!(
        "{own} on {} was stopped for a recovery of the cluster, and never runs again with this data, but {} says nothing of \
         that: restore its newest version (from object versions of the bucket), or recover the cluster again with `kctl etcd recover`",
        own.volume,
        record_key(own.etcd)
    )
}

/// True if a member that the record lacks may begin on the volume: nothing is on it, or it was prepared for a new member that never
/// ran, or its data is of a member that was removed or of an etcd cluster that was given up.
pub(super) fn may_begin(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    content: &VolumeContent,
) -> bool {
    match content {
        VolumeContent::Blank | VolumeContent::FileSystem(FileSystemContent::Nothing) => true,
        VolumeContent::Unrecognized => record.was_blank(own.member, own.volume),
        VolumeContent::FileSystem(FileSystemContent::Marked { marker, log }) => {
            // A founder that was forgotten has not started, see `forget_member`.
            let was_founder = marker.token == record.generation.token || record.began_anew();
            let is_prepared = (marker.joins.is_some() || was_founder) && !marker.has_run();
            let is_own = check_owner(own, marker).is_ok() && marker.volume == own.volume;
            let is_removed = is_own && was_retired_on(own, record, content);
            is_own && is_prepared && *log == EtcdLog::Missing
                || is_removed
                || is_given_up(own, record, content)
        }
        _ => false,
    }
}

/// True if the volume holds data of this member of an etcd cluster that was given up.
pub(super) fn is_given_up(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    content: &VolumeContent,
) -> bool {
    let VolumeContent::FileSystem(FileSystemContent::Marked { marker, .. }) = content else {
        return false;
    };
    check_owner(own, marker).is_ok()
        && marker.volume == own.volume
        && cluster_of(content).is_some_and(|id| has_given_up(record, marker, id))
}

/// The founder of the new cluster still has its old data in place: the restored data takes its place.
pub(super) fn use_restored(
    own: &OwnMember<'_>,
    formed: &Formed<'_>,
    content: &VolumeContent,
) -> Option<FormationStep> {
    let VolumeContent::FileSystem(FileSystemContent::Marked { marker, .. }) = content else {
        return None;
    };
    let restored = LogIdentity {
        cluster_id: formed.cluster_id.to_owned(),
        member_id: formed.recorded.member_id.clone()?,
    };
    let snapshot = formed.record.generation.restored.clone();
    let is_own = formed.recorded.volume == own.volume;
    if !is_own || !is_given_up(own, formed.record, content) {
        return None;
    }
    Some(FormationStep::UseRestored {
        marker: Marker {
            token: formed.token.to_owned(),
            cluster_id: Some(restored.cluster_id.clone()),
            member_id: Some(restored.member_id.clone()),
            joins: None,
            // This instance's etcd made the log.
            etcd_version: Some(own.version.to_owned()),
            stopped: None,
            last_seen: None,
            ..marker.clone()
        },
        restored,
        snapshot,
    })
}
