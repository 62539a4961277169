//! What an operator may have forgotten: a member that a cluster which is being founded waits for in vain, and a whole etcd cluster
//! whose data nobody needs, which is then founded anew. Nothing is deleted: each volume keeps its old data.

use super::content::{EtcdLog, Marker};
use super::own_member::{OwnMember, with_own_member};
use super::record::{FormationRecord, Generation, RecordedMember};
use super::retired::has_given_up;
use super::step::FormationStep;
use std::collections::BTreeMap;

/// The record of a cluster that is being founded without a member whose volume nobody has seen. No member starts before all volumes
/// in the record were seen, so none can have started with the forgotten one. If its instance comes later, it is added. `holder` is the
/// instance that its volume is attached to: an old etcd may run there.
///
/// # Errors
/// Why the member cannot be forgotten.
pub fn forget_member(
    record: &FormationRecord,
    member: &str,
    holder: Option<&str>,
) -> Result<FormationRecord, String> {
    let Some(recorded) = record.members.get(member) else {
        let members: Vec<&str> = record.members.keys().map(String::as_str).collect();
        return Err(format!(
            "it has no member {member}; its members: {}",
            members.join(", ")
        ));
    };
    if !record.is_forming() {
        return Err(
            "it exists. Its members leave when they are removed from the spec, and lost ones are replaced".to_owned(),
        );
    }
    if recorded.blank || recorded.prepared {
        return Err(format!(
            "an instance has taken {}, the volume of member {member}, so the others count on it",
            recorded.volume
        ));
    }
    if let Some(holder) = holder {
        return Err(format!(
            "{holder} has {}, the volume of member {member}; terminate it if it does not come up",
            recorded.volume
        ));
    }
    if record.members.len() == 1 {
        return Err(format!("member {member} is the last one"));
    }
    let mut next = record.clone();
    next.members.remove(member);
    Ok(next)
}

/// The record with which an etcd cluster is given up, and founded anew with the same members. Each of them stops first and moves its
/// data aside, and none starts before all have. One that is still being founded is given up by its token: some of its members may have
/// begun, and the volume of another be gone.
///
/// # Errors
/// Why it cannot be given up.
pub fn found_anew(record: &FormationRecord, token: &str) -> Result<FormationRecord, String> {
    let mut next = record.clone();
    next.give_up(Generation::forming(token));
    let stays = record.members.iter();
    let stays = stays.filter(|(member, _)| !record.leaving.contains_key(*member));
    let fresh = |(member, one): (&String, &RecordedMember)| {
        (
            member.clone(),
            RecordedMember::on_volume(&one.volume, false),
        )
    };
    let members: BTreeMap<String, RecordedMember> = stays.map(fresh).collect();
    if members.is_empty() {
        return Err("all its members leave".to_owned());
    }
    next.members = members;
    Ok(next)
}

/// True if a cluster that was given up had a member with the id in the marker.
fn is_of_given_up(record: &FormationRecord, marker: &Marker) -> bool {
    let mut known = record.retired_members(&marker.member);
    record.has_given_up(&marker.token)
        || known.any(|one| one.member_id.is_some() && one.member_id == marker.member_id)
}

/// The next step of a member of a cluster that is being founded in the place of an old one, while its volume still has what it had for
/// the old one. `fresh` is the marker for the new cluster.
pub(super) fn set_old_aside(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    fresh: &Marker,
    (marker, log): (&Marker, &EtcdLog),
) -> Option<FormationStep> {
    let is_ready = marker.token == fresh.token && *log == EtcdLog::Missing && !marker.has_run();
    let recorded = record.members.get(own.member)?;
    if is_ready {
        // From now on it counts as prepared, and an interrupted mkfs is no reason to make a file system.
        let is_counted = recorded.blank || recorded.prepared;
        return (!is_counted).then(|| {
            FormationStep::Record(with_own_member(own, record, |one| one.prepared = true))
        });
    }
    if marker.token == fresh.token {
        return None;
    }
    let of_log = match log {
        EtcdLog::Of(log) => Some(log),
        _ => None,
    };
    let known = marker.cluster_id.as_ref();
    let known = known.or_else(|| of_log.map(|log| &log.cluster_id));
    match (known, of_log) {
        (Some(id), _) if !has_given_up(record, marker, id) => None,
        // Once the data is moved, only the marker says whose it was.
        (Some(_), Some(log)) if marker.cluster_id.is_none() => Some(FormationStep::Mark {
            marker: Marker {
                cluster_id: Some(log.cluster_id.clone()),
                member_id: Some(log.member_id.clone()),
                ..marker.clone()
            },
            new: false,
        }),
        // It was prepared for the old cluster and has not run, or not for long enough to have a log.
        (None, _) if !record.began_anew() => None,
        (None, _) if marker.has_run() && !is_of_given_up(record, marker) => None,
        _ => Some(FormationStep::SetAside {
            marker: fresh.clone(),
        }),
    }
}
