//! What a machine does with the volume it holds once the record says that the etcd cluster is formed.

use super::content::{Content, Inside, Marker};
use super::decide::{Own, Step};
use super::record::{Record, RecordedMember, State};
use super::whose::{checked_log, holds, way_out, whose};
use crate::components::EtcdStart;

/// The record of a cluster whose members run: none to write if it says so already.
pub fn formed(record: &Record, cluster_id: &str) -> Option<Record> {
    let State::Forming { token, .. } = &record.state else {
        return None;
    };
    Some(Record {
        state: State::formed(cluster_id, token),
        ..record.clone()
    })
}

/// Why what answers is not the etcd that runs from this machine's volume, if it is not.
pub fn stray(record: &Record, running: &str) -> Option<String> {
    match &record.state {
        State::Formed { cluster_id, .. } if cluster_id != running => Some(format!(
            "the etcd that answers here is of cluster {running}, and the one on this machine's volume of {cluster_id}: something \
             else listens on its ports"
        )),
        _ => None,
    }
}

/// What a record says of a cluster that is formed.
pub(super) struct Formed<'a> {
    pub record: &'a Record,
    pub recorded: &'a RecordedMember,
    pub cluster_id: &'a str,
    pub token: &'a str,
}

pub(super) fn of_formed(own: &Own<'_>, formed: &Formed<'_>, content: &Content) -> Step {
    run(own, formed, content).unwrap_or_else(Step::Refuse)
}

fn run(own: &Own<'_>, formed: &Formed<'_>, content: &Content) -> Result<Step, String> {
    let Formed {
        record, recorded, ..
    } = formed;
    let Content::FileSystem(Inside::Marked { marker, log }) = content else {
        return Err(format!(
            "etcd {} is formed with member {} on {}, and {} {}: no second cluster is founded over it. {}",
            own.etcd,
            own.member,
            recorded.volume,
            own.volume,
            holds(content),
            way_out(own, &recorded.volume)
        ));
    };
    whose(own, marker)?;
    check_cluster(own, formed, marker)?;
    let identity = checked_log(own, marker, log)?;
    if identity.cluster_id != formed.cluster_id {
        return Err(other_cluster(own, &identity.cluster_id, formed));
    }
    let id = Some(&identity.member_id);
    if let Some(known) = &recorded.member_id
        && *known != identity.member_id
    {
        return Err(format!(
            "the log on {} is of member {}, and the record says that member {} of etcd {} is {known}: it is not started. {}",
            own.volume,
            identity.member_id,
            own.member,
            own.etcd,
            way_out(own, &recorded.volume)
        ));
    }
    if recorded.volume != own.volume {
        return moved(own, record, recorded);
    }
    // Of one member the record has moved to the copy, and its marker follows.
    if marker.volume != own.volume && record.members.len() > 1 {
        return Err(copied(own, &marker.volume));
    }
    if marker.cluster_id.is_none() || marker.member_id.as_ref() != id || marker.volume != own.volume
    {
        let marker = Marker {
            volume: own.volume.to_owned(),
            cluster_id: Some(formed.cluster_id.to_owned()),
            member_id: id.cloned(),
            ..marker.clone()
        };
        return Ok(Step::Mark { marker, new: false });
    }
    if recorded.member_id.is_none() {
        return Ok(Step::Record(with_own(own, record, |member| {
            member.member_id = id.cloned();
        })));
    }
    Ok(Step::Start(EtcdStart::Existing))
}

/// The record with a change of this machine's member.
pub(super) fn with_own(
    own: &Own<'_>,
    record: &Record,
    change: impl FnOnce(&mut RecordedMember),
) -> Record {
    let mut record = record.clone();
    if let Some(member) = record.members.get_mut(own.member) {
        change(member);
    }
    record
}

fn check_cluster(own: &Own<'_>, formed: &Formed<'_>, marker: &Marker) -> Result<(), String> {
    match &marker.cluster_id {
        Some(cluster_id) if cluster_id != formed.cluster_id => {
            Err(other_cluster(own, cluster_id, formed))
        }
        // It died after the record was written and before the marker was.
        None if marker.token != formed.token => Err(other_cluster(own, "unknown", formed)),
        _ => Ok(()),
    }
}

fn other_cluster(own: &Own<'_>, cluster_id: &str, formed: &Formed<'_>) -> String {
    format!(
        "{} holds data of etcd cluster {cluster_id}, and the record says that etcd {} is {}: it is not started",
        own.volume, own.etcd, formed.cluster_id
    )
}

fn moved(own: &Own<'_>, record: &Record, recorded: &RecordedMember) -> Result<Step, String> {
    check_copy(own, &recorded.volume, record.members.len())?;
    Ok(Step::Record(with_own(own, record, |member| {
        own.volume.clone_into(&mut member.volume);
    })))
}

/// Whether a copy of a member's volume, from a snapshot of EBS, takes its place. Alone it is the cluster, as old as the copy; among others
/// it would have forgotten what it agreed to. And what was written since is forgotten: so that volume must be gone, as EC2 says of its id.
pub(super) fn check_copy(own: &Own<'_>, original: &str, members: usize) -> Result<(), String> {
    if members > 1 {
        return Err(copied(own, original));
    }
    if !own.gone.contains(original) {
        return Err(format!(
            "{} is a copy of member {}'s volume {original}, and EC2 does not say that that one is gone: give the member {original} back, \
             with its tags, and take those of {} away; or delete {original}",
            own.volume, own.member, own.volume
        ));
    }
    Ok(())
}

fn copied(own: &Own<'_>, original: &str) -> String {
    format!(
        "{} is a copy of member {}'s volume {original}: a member that forgets what it agreed to breaks the others, so it is not started. {}",
        own.volume,
        own.member,
        way_out(own, original)
    )
}
