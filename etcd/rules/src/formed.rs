//! Decides the next step for a member whose etcd cluster is formed.

use super::advice::recovery_hint;
use super::content::{FileSystemContent, Marker, VolumeContent};
use super::leave::{decide_leaving, decide_removal};
use super::own_member::{Formed, OwnMember, with_own_member};
use super::record::{FormationRecord, Generation, RecordedMember};
use super::replace::{
    begin_replacement, decide_replacing, find_live, has_lost_data, record_id, running_id,
};
use super::retired::{find_newer_formed, stopped_for_good, use_restored};
use super::step::{FormationStep, wait_for_second_answer};
use super::successors::refuse_replaced;
use super::table::Row;
use super::version_gate::gate_version;
use super::volume_owner::{check_log, check_owner, describe_content};
use node::components::EtcdStart;

/// The record with the state `formed`; `None` if it has that state already.
pub fn mark_formed(record: &FormationRecord, cluster_id: &str) -> Option<FormationRecord> {
    record.is_forming().then(|| FormationRecord {
        generation: Generation::formed(cluster_id, &record.generation.token),
        ..record.clone()
    })
}

/// The error message if the etcd that responds here (cluster id `running`) is not the recorded one.
pub fn foreign_cluster(record: &FormationRecord, running: &str) -> Option<String> {
    let cluster_id = record.cluster_id().filter(|id| *id != running)?;
    Some(format!(
        "the etcd that responds on this instance belongs to cluster {running}, but the volume to {cluster_id}: another process listens on \
         its ports"
    ))
}

type WhileFormed = fn(&OwnMember<'_>, &Formed<'_>, &VolumeContent) -> Option<FormationStep>;

/// The record is of an etcd cluster that exists, and nothing is to take its place.
pub(super) const FORMED: [Row<WhileFormed>; 7] = [
    Row {
        when: "this member's data of a cluster that the record does not know, and that `etcd/formed/main/` shows",
        then: "leave running what runs, start nothing: the record is of an older version",
        step: find_newer_formed,
    },
    Row {
        when: "anything, and `etcd/formed/main/` shows a cluster that took the place of the recorded one",
        then: "refuse: the record is of an older version",
        step: |own, formed, _| refuse_replaced(own, formed),
    },
    Row {
        when: "anything, and this member is in `leaving`; its data is lost, or it is being replaced",
        then: "wait until it is removed",
        step: |own, formed, content| {
            let leaves = formed.record.leaving.contains_key(own.member);
            let changes = is_replacing(own, formed) || is_lost(own, formed, content);
            (leaves && changes).then(|| decide_leaving(own, formed.record))
        },
    },
    Row {
        when: "anything, and this member is in `replacing`",
        then: "the next step of [its replacement](#replacement-and-addition-of-members)",
        step: |own, formed, content| {
            is_replacing(own, formed).then(|| decide_replacing(own, formed, content))
        },
    },
    Row {
        when: "this member's marker, of a cluster that was given up for this one",
        then: "stop, and put the restored data in the place of the old",
        step: use_restored,
    },
    Row {
        when: "of several members this one's data is lost: it is blank again, or has this member's marker without a readable log, or with one that lost \
               its end; or it is blank, and EC2 said twice, a minute apart, that the recorded volume does not exist",
        then: "[replace the member](#replacement-and-addition-of-members)",
        step: |own, formed, content| {
            is_lost(own, formed, content)
                .then(|| begin_replacement(own, formed.record, formed.cluster_id, content))
        },
    },
    Row {
        when: "anything else",
        then: "if it is this cluster's marker and its log: add missing ids to marker and record, [upgrade](#another-minor-of-etcd) if they are of another \
               minor of etcd, start as `existing`, and [remove members](#removal-of-members) that leave. If it is a copy of a lone member's volume \
               that is gone according to EC2: record the new volume. Otherwise refuse",
        step: |own, formed, content| Some(serve(own, formed, content)),
    },
];

fn is_replacing(own: &OwnMember<'_>, formed: &Formed<'_>) -> bool {
    let replacing = formed.record.replacing.as_ref();
    replacing.is_some_and(|of| of.member == own.member)
}

/// A lone member's data is not lost as long as somebody may bring it back.
fn is_lost(own: &OwnMember<'_>, formed: &Formed<'_>, content: &VolumeContent) -> bool {
    formed.record.data_members() > 1 && has_lost_data(own, formed.recorded, content)
}

fn serve(own: &OwnMember<'_>, formed: &Formed<'_>, content: &VolumeContent) -> FormationStep {
    let step = try_decide_formed(own, formed, content).unwrap_or_else(FormationStep::Refuse);
    let removal = match step {
        FormationStep::Start(EtcdStart::Existing) => decide_removal(own, formed),
        _ => None,
    };
    removal.unwrap_or(step)
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
