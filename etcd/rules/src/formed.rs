//! Decides the next step for a member whose etcd cluster is formed.

use super::advice::recovery_hint;
use super::content::{FileSystemContent, Marker, VolumeContent};
use super::given_up::{stopped_for_good, use_restored};
use super::leave::{decide_leaving, decide_removal};
use super::own_member::{Formed, OwnMember, with_own_member};
use super::record::{FormationRecord, FormationState, RecordedMember};
use super::replace::{
    begin_replacement, decide_replacing, find_live, has_lost_data, record_id, running_id,
};
use super::step::{FormationStep, wait_for_second_answer};
use super::version_gate::gate_version;
use super::volume_owner::{check_log, check_owner, describe_content};
use node::components::EtcdStart;

/// The record with the state `formed`; `None` if it has that state already.
pub fn mark_formed(record: &FormationRecord, cluster_id: &str) -> Option<FormationRecord> {
    let FormationState::Forming { token, .. } = &record.state else {
        return None;
    };
    Some(FormationRecord {
        state: FormationState::formed(cluster_id, token),
        ..record.clone()
    })
}

/// The error message if the etcd that responds here (cluster id `running`) is not the recorded one.
pub fn foreign_cluster(record: &FormationRecord, running: &str) -> Option<String> {
    match &record.state {
        FormationState::Formed { cluster_id, .. } if cluster_id != running => Some(format!(
            "the etcd that responds on this instance belongs to cluster {running}, but the volume to {cluster_id}: another process \
             listens on its ports"
        )),
        _ => None,
    }
}

pub(super) fn decide_formed(
    own: &OwnMember<'_>,
    formed: &Formed<'_>,
    content: &VolumeContent,
) -> FormationStep {
    let record = formed.record;
    let leaves = record.leaving.contains_key(own.member);
    let replacing = record.replacing.as_ref();
    if replacing.is_some_and(|of| of.member == own.member) {
        return if leaves {
            decide_leaving(own, record)
        } else {
            decide_replacing(own, formed, content)
        };
    }
    if let Some(step) = use_restored(own, formed, content) {
        return step;
    }
    if record.data_members() > 1 && has_lost_data(own, formed.recorded, content) {
        return if leaves {
            decide_leaving(own, record)
        } else {
            begin_replacement(own, record, formed.cluster_id, content)
        };
    }
    let step = try_decide_formed(own, formed, content).unwrap_or_else(FormationStep::Refuse);
    if step == FormationStep::Start(EtcdStart::Existing)
        && let Some(removal) = decide_removal(own, formed)
    {
        return removal;
    }
    step
}

pub(super) fn try_decide_formed(
    own: &OwnMember<'_>,
    formed: &Formed<'_>,
    content: &VolumeContent,
) -> Result<FormationStep, String> {
    let Formed {
        record, recorded, ..
    } = formed;
    let VolumeContent::FileSystem(FileSystemContent::Marked { marker, log }) = content else {
        return Err(format!(
            "etcd {} is formed with member {} on {}, but {} {}: no second cluster is founded over it. {}",
            own.etcd,
            own.member,
            recorded.volume,
            own.volume,
            describe_content(content),
            recovery_hint(own, &recorded.volume, record.data_members())
        ));
    };
    check_owner(own, marker)?;
    check_cluster(own, formed, marker)?;
    let identity = check_log(own, marker, log, record.data_members())?;
    if identity.cluster_id != formed.cluster_id {
        return Err(other_cluster(own, &identity.cluster_id, formed));
    }
    let id = Some(&identity.member_id);
    if let Some(known) = &recorded.member_id
        && *known != identity.member_id
    {
        if marker.volume == own.volume && record.data_members() > 1 {
            let live = match find_live(own, formed.cluster_id) {
                Ok(live) => live,
                Err(step) => return Ok(*step),
            };
            // A replacement is over, and an older version of the record was restored.
            if let Some(id) = running_id(own, formed, content, live) {
                return Ok(record_id(own, record, Some(id)));
            }
        }
        return Err(format!(
            "the log on {} belongs to member {}, but the record says that member {} of etcd {} is {known}: it is not started. {}",
            own.volume,
            identity.member_id,
            own.member,
            own.etcd,
            recovery_hint(own, &recorded.volume, record.data_members())
        ));
    }
    if recorded.volume != own.volume {
        return record_copy(own, record, recorded);
    }
    // With one member the record has moved to the copy already, and the marker follows.
    if marker.volume != own.volume && record.data_members() > 1 {
        return Err(copy_refusal(own, &marker.volume, record.data_members()));
    }
    if marker.cluster_id.is_none() || marker.member_id.as_ref() != id || marker.volume != own.volume
    {
        let marker = Marker {
            volume: own.volume.to_owned(),
            cluster_id: Some(formed.cluster_id.to_owned()),
            member_id: id.cloned(),
            ..marker.clone()
        };
        return Ok(FormationStep::Mark { marker, new: false });
    }
    if recorded.member_id.is_none() {
        return Ok(FormationStep::Record(with_own_member(
            own,
            record,
            |member| {
                member.member_id = id.cloned();
            },
        )));
    }
    let step = gate_version(own, formed, marker);
    Ok(step.unwrap_or(FormationStep::Start(EtcdStart::Existing)))
}

fn check_cluster(own: &OwnMember<'_>, formed: &Formed<'_>, marker: &Marker) -> Result<(), String> {
    if marker.stopped.is_some() {
        return Err(stopped_for_good(own));
    }
    match &marker.cluster_id {
        Some(cluster_id) if cluster_id != formed.cluster_id => {
            Err(other_cluster(own, cluster_id, formed))
        }
        // The instance died after the record was written and before the marker was.
        None if marker.token != formed.token => Err(other_cluster(own, "unknown", formed)),
        _ => Ok(()),
    }
}

fn other_cluster(own: &OwnMember<'_>, cluster_id: &str, formed: &Formed<'_>) -> String {
    format!(
        "{} holds data of etcd cluster {cluster_id}, but the record says that etcd {} is {}: it is not started",
        own.volume, own.etcd, formed.cluster_id
    )
}

fn record_copy(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    recorded: &RecordedMember,
) -> Result<FormationStep, String> {
    if let Some(wait) = check_copy(own, &recorded.volume, record.data_members())? {
        return Ok(wait);
    }
    Ok(FormationStep::Record(with_own_member(
        own,
        record,
        |member| {
            own.volume.clone_into(&mut member.volume);
        },
    )))
}

/// Checks whether a copy of a member's volume (from an EBS snapshot) may replace it. A lone member's copy is the cluster at the
/// time of the copy. Among several members it would have forgotten what it agreed to. In both cases later writes are lost, so
/// EC2 must say that the original volume does not exist any more, and say it again a minute later: its answers may be old. Until then the
/// step is to wait.
pub(super) fn check_copy(
    own: &OwnMember<'_>,
    original: &str,
    members: usize,
) -> Result<Option<FormationStep>, String> {
    if members > 1 {
        return Err(copy_refusal(own, original, members));
    }
    if own.gone_twice.contains(original) {
        return Ok(None);
    }
    if !own.gone.contains(original) {
        return Err(format!(
            "{} is a copy of member {}'s volume {original}, which was not deleted: let the member use {original} again, \
             with its tags, and remove the tags of {}; or delete {original}",
            own.volume, own.member, own.volume
        ));
    }
    Ok(Some(wait_for_second_answer(own, original)))
}

fn copy_refusal(own: &OwnMember<'_>, original: &str, members: usize) -> String {
    format!(
        "{} is a copy of member {}'s volume {original}: a member that has forgotten what it agreed to corrupts the cluster, so it is not started. {}",
        own.volume,
        own.member,
        recovery_hint(own, original, members)
    )
}
