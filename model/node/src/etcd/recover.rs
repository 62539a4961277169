//! Decides the steps of a recovery: an etcd cluster that lost more than half of its members becomes a new cluster, with another id,
//! that begins with the data of one member. All other members are stopped before, and join the new cluster as new members after.
//! Nothing is deleted: each volume keeps its old data beside the new.

use super::choose::SeenVolume;
use super::content::{EtcdLog, FileSystemContent, Marker, VolumeContent};
use super::decide::{FormationStep, OwnMember};
use super::formed::Formed;
use super::leave::was_removed_on;
use super::log::LogIdentity;
use super::record::{FormationRecord, FormationState, RecordedMember, Recovering, UnknownFields};
use super::volume_owner::{check_owner, check_remaining_log, describe_content};
use std::collections::BTreeSet;

/// By how much the revision of the restored data is raised: more than can have been written since. All older revisions are marked
/// as compacted, so every client that knows one gets an error and lists anew (etcd documentation, "Disaster recovery").
pub const REVISION_BUMP: u64 = 1_000_000_000;

/// The record with which a recovery begins, or goes on from another member than the one that was asked for before. The error says why
/// this cluster cannot be recovered from this member.
pub fn begin_recovery(
    record: &FormationRecord,
    from: &str,
    token: &str,
) -> Result<FormationRecord, String> {
    let known = record.members.get(from);
    let known = known.ok_or_else(|| {
        let members: Vec<&str> = record.members.keys().map(String::as_str).collect();
        format!(
            "it has no member {from}; its members: {}",
            members.join(", ")
        )
    })?;
    if known.member_id.is_none() {
        return Err(format!("member {from} has not run yet, so it has no data"));
    }
    if record
        .replacing
        .as_ref()
        .is_some_and(|of| of.member == from)
    {
        return Err(format!(
            "member {from} is being replaced or added, so it may not have the data yet"
        ));
    }
    let (cluster_id, mut stopped) = match &record.state {
        FormationState::Formed { cluster_id, .. } => (cluster_id, BTreeSet::new()),
        FormationState::Recovering(before) if before.from == from => {
            return Err(format!("it is being recovered from member {from} already"));
        }
        // Whoever has stopped stays stopped; the member that was the source before stops now.
        FormationState::Recovering(before) => (&before.cluster_id, before.stopped.clone()),
        FormationState::Forming { .. } => {
            return Err("it was never formed, so it has no data".to_owned());
        }
    };
    stopped.remove(from);
    let mut leaving = record.leaving.clone();
    // It will be the only one with data; the next update may ask again.
    leaving.remove(from);
    Ok(FormationRecord {
        leaving,
        state: FormationState::Recovering(Recovering {
            from: from.to_owned(),
            token: token.to_owned(),
            cluster_id: cluster_id.clone(),
            stopped,
            unknown: UnknownFields::new(),
        }),
        replacing: None,
        ..record.clone()
    })
}

/// The record once the data of the member was restored as the log of a new cluster: that member alone, on the same volume. The
/// others join it as new members.
pub fn end_recovery(record: &FormationRecord, restored: &LogIdentity) -> Option<FormationRecord> {
    let FormationState::Recovering(recovering) = &record.state else {
        return None;
    };
    let mut next = record.clone();
    let source = record.members.get(&recovering.from)?;
    let founder = RecordedMember {
        member_id: Some(restored.member_id.clone()),
        ..source.clone()
    };
    next.members = [(recovering.from.clone(), founder)].into();
    let before = record.members.clone();
    next.given_up.insert(recovering.cluster_id.clone(), before);
    next.state = FormationState::formed(&restored.cluster_id, &recovering.token);
    Some(next)
}

/// The next step of a recorded member while its cluster is being recovered.
pub(super) fn decide_recovering(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    recovering: &Recovering,
    recorded: &RecordedMember,
    content: &VolumeContent,
) -> FormationStep {
    if own.member != recovering.from {
        return stop_member(own, record, recovering);
    }
    let marker = match check_source(own, recovering, recorded, content) {
        Ok(marker) => marker,
        Err(why) => return FormationStep::Refuse(why),
    };
    if marker.cluster_id.is_none() || marker.member_id.is_none() {
        // Afterwards its marker shows that the data belongs to the cluster that is given up.
        let marker = Marker {
            cluster_id: Some(recovering.cluster_id.clone()),
            member_id: recorded.member_id.clone(),
            ..marker.clone()
        };
        return FormationStep::Mark { marker, new: false };
    }
    match find_unstopped(own, record, recovering) {
        Some(why) => FormationStep::Wait(why),
        None => FormationStep::Restore {
            token: recovering.token.clone(),
        },
    }
}

/// Another member than the one whose data is kept: it never runs under its id again.
fn stop_member(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    recovering: &Recovering,
) -> FormationStep {
    if recovering.stopped.contains(own.member) {
        return FormationStep::Wait(format!(
            "etcd {} is being recovered from member {}: member {} was stopped, and joins anew afterwards",
            own.etcd, recovering.from, own.member
        ));
    }
    let mut recovering = recovering.clone();
    recovering.stopped.insert(own.member.to_owned());
    FormationStep::Stop(FormationRecord {
        state: FormationState::Recovering(recovering),
        ..record.clone()
    })
}

/// Checks that the volume holds the recorded log of the member.
fn check_source<'a>(
    own: &OwnMember<'_>,
    recovering: &Recovering,
    recorded: &RecordedMember,
    content: &'a VolumeContent,
) -> Result<&'a Marker, String> {
    let VolumeContent::FileSystem(FileSystemContent::Marked { marker, log }) = content else {
        return Err(format!(
            "etcd {} is to be recovered from member {} on {}, but {} {}",
            own.etcd,
            own.member,
            recorded.volume,
            own.volume,
            describe_content(content)
        ));
    };
    check_owner(own, marker)?;
    let log = check_remaining_log(own, marker, log)?;
    let is_source = recorded.volume == own.volume
        && marker.volume == own.volume
        && log.cluster_id == recovering.cluster_id
        && recorded.member_id.as_ref() == Some(&log.member_id);
    if is_source {
        return Ok(marker);
    }
    Err(format!(
        "etcd {} is to be recovered from member {} ({}) of cluster {} on {}, but {} holds member {} of cluster {}",
        own.etcd,
        own.member,
        recorded.member_id.as_deref().unwrap_or("unknown"),
        recovering.cluster_id,
        recorded.volume,
        own.volume,
        log.member_id,
        log.cluster_id
    ))
}

/// A member that could still run with its old data, because an instance holds its volume and has not stopped it. Together such
/// members would be a quorum of the old cluster.
fn find_unstopped(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    recovering: &Recovering,
) -> Option<String> {
    let others = record
        .members
        .iter()
        .filter(|(member, _)| *member != own.member && !recovering.stopped.contains(*member));
    let mut reasons = others.filter_map(|(member, recorded)| {
        let volume = &recorded.volume;
        if own.gone.contains(volume) {
            return None;
        }
        let seen: Option<&SeenVolume> = own.seen.iter().find(|seen| seen.id == *volume);
        let Some(seen) = seen else {
            return Some(format!("EC2 does not show {volume} of member {member}"));
        };
        let holder = seen.holder.as_ref()?;
        Some(format!(
            "{} has {volume} of member {member}, and its protokube has not stopped the member yet; if the instance does not come back, \
             terminate it",
            holder.instance
        ))
    });
    reasons.next().map(|why| {
        format!(
            "etcd {} is recovered from member {} once no other member can run: {why}",
            own.etcd, own.member
        )
    })
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
        VolumeContent::Unrecognized => was_blank(own, record),
        VolumeContent::FileSystem(FileSystemContent::Marked { marker, log }) => {
            // A founder that was forgotten has not started, see `forget_member`.
            let was_founder = marker.token == record.token() || !record.given_up.is_empty();
            let is_prepared = (marker.joins.is_some() || was_founder) && !marker.has_run();
            let is_own = check_owner(own, marker).is_ok() && marker.volume == own.volume;
            let is_removed = is_own && was_removed_on(record, own.member, own.volume);
            is_own && is_prepared && *log == EtcdLog::Missing
                || is_removed
                || is_given_up(own, record, content)
        }
        _ => false,
    }
}

/// True if the volume was seen blank for a member that has not run since.
pub(super) fn was_blank(own: &OwnMember<'_>, record: &FormationRecord) -> bool {
    let known = record.given_up.values().chain([&record.members]);
    let known = known.filter_map(|members| members.get(own.member));
    let removed = record.removed.get(own.member).into_iter().flatten();
    let mut own_records = known.chain(removed);
    own_records.any(|of| of.volume == own.volume && of.blank && of.member_id.is_none())
}

/// True if the volume holds data of this member of an etcd cluster that was given up.
pub(super) fn is_given_up(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    content: &VolumeContent,
) -> bool {
    let VolumeContent::FileSystem(FileSystemContent::Marked { marker, log }) = content else {
        return false;
    };
    let of_log = match log {
        EtcdLog::Of(log) => Some(&log.cluster_id),
        _ => None,
    };
    let known = marker.cluster_id.as_ref().or(of_log);
    check_owner(own, marker).is_ok()
        && marker.volume == own.volume
        && known.is_some_and(|id| record.given_up.contains_key(id))
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
            last_seen: None,
            ..marker.clone()
        },
        restored,
    })
}
