//! Decides when a snapshot takes the place of an etcd cluster's data: the restore is a recovery whose source is a snapshot. One member
//! begins a new cluster with it, on its volume or on a blank one in the place of a volume that is gone; all others stop before, and
//! join as new members after. Nothing is deleted: each volume keeps its old data beside the new.

use super::content::{FileSystemContent, Marker, VolumeContent};
use super::own_member::{Formed, OwnMember, with_own_member};
use super::record::{
    FormationRecord, Generation, NextGeneration, RecordedMember, RefusedRestore, Replacing,
    RestoredSnapshot, Source,
};
use super::step::{FormationStep, wait_for_second_answer};
use super::volume_owner::{check_owner, describe_content};
use node::formatted::UnknownFields;
use node::waits::bounded_text;

/// Limit of what the record says of a snapshot that cannot be used, characters.
const WHY_LIMIT: usize = 500;

/// The record with which the restore of a snapshot on the volume of the member `from` begins. It takes the place of a recovery or
/// restore that is under way. The member need not have any data: it may be one that is being replaced or added, or one that is to be added,
/// if `volume` says which volume its instance holds. The error says why this cluster cannot be restored there.
pub fn begin_restore(
    record: &FormationRecord,
    from: &str,
    volume: Option<&str>,
    token: &str,
    snapshot: RestoredSnapshot,
) -> Result<FormationRecord, String> {
    let joined = add_place(record, from, volume)?;
    let record = joined.as_ref().unwrap_or(record);
    if record.is_forming() {
        return Err(
            "it was never formed: a snapshot is restored in a cluster that serves".to_owned(),
        );
    }
    let mut leaving = record.leaving.clone();
    leaving.remove(from);
    Ok(FormationRecord {
        leaving,
        next: Some(record.begin_next(from, token, Source::Snapshot(snapshot))),
        ..record.clone()
    })
}

/// The record with a member that it lacks as one that is being added, on this volume: that is what it is, should the restore be called off.
/// `None`: the record has it.
fn add_place(
    record: &FormationRecord,
    from: &str,
    volume: Option<&str>,
) -> Result<Option<FormationRecord>, String> {
    if record.members.contains_key(from) {
        return Ok(None);
    }
    let members: Vec<&str> = record.members.keys().map(String::as_str).collect();
    let members = members.join(", ");
    if record.has_left(from) {
        return Err(format!(
            "member {from} was removed from it; its members: {members}"
        ));
    }
    if let Some(other) = &record.replacing {
        return Err(format!(
            "it has no member {from} yet, because member {} is being replaced or added; its members: {members}",
            other.member
        ));
    }
    let Some(volume) = volume else {
        return Err(format!(
            "it has no member {from}, and no instance reports a volume of it; its members: {members}"
        ));
    };
    let mut next = record.clone();
    let place = RecordedMember::on_volume(volume, false);
    next.members.insert(from.to_owned(), place);
    next.replacing = Some(Replacing {
        member: from.to_owned(),
        added: true,
        unknown: UnknownFields::new(),
    });
    Ok(Some(next))
}

/// The record of a cluster whose restore or recovery is called off, and why that is: an operator asks for it, or the snapshot cannot be used. The reason
/// stays in the record, which is thus another one than before the restore: a write that was lost on its way does not begin it anew. The error
/// says why it is too late.
pub fn call_off_restore(record: &FormationRecord, why: &str) -> Result<FormationRecord, String> {
    let Some(next) = &record.next else {
        return Err("it is neither being restored nor recovered".to_owned());
    };
    let snapshot = next.snapshot().map(|snapshot| snapshot.name.clone());
    if !next.has_stopped_nobody() {
        return Err(
            "its members are being stopped, and what was stopped never runs again with its data"
                .to_owned(),
        );
    }
    Ok(FormationRecord {
        generation: Generation {
            refused: Some(RefusedRestore {
                token: next.token.clone(),
                source: snapshot.unwrap_or_else(|| format!("member {}", next.from)),
                why: bounded_text(why, WHY_LIMIT),
                unknown: UnknownFields::new(),
            }),
            ..record.generation.clone()
        },
        next: None,
        ..record.clone()
    })
}

/// Checks that the volume is where the snapshot is to be restored, whatever became of the data on it, and returns its marker. The error
/// is the step that has to be taken before.
pub(super) fn check_place<'a>(
    own: &OwnMember<'_>,
    formed: &Formed<'_>,
    next: &NextGeneration,
    content: &'a VolumeContent,
) -> Result<&'a Marker, Box<FormationStep>> {
    let Formed {
        record,
        recorded,
        cluster_id,
        ..
    } = formed;
    let is_new = recorded.member_id.is_none() && recorded.blank;
    let step = match content {
        _ if recorded.volume != own.volume => take_new_volume(own, record, recorded, content),
        VolumeContent::Blank if !is_new => record_blank(own, record),
        VolumeContent::Blank => FormationStep::Format,
        // The volume was recorded as blank, so this can only be an interrupted mkfs.
        VolumeContent::Unrecognized if is_new => FormationStep::Format,
        VolumeContent::FileSystem(FileSystemContent::Nothing) if is_new => FormationStep::Mark {
            // The data that it does not have is of the cluster that is given up, so what is restored takes its place.
            marker: Marker {
                cluster_id: Some((*cluster_id).to_owned()),
                ..own.new_marker(&next.token)
            },
            new: true,
        },
        VolumeContent::FileSystem(FileSystemContent::Marked { marker, .. }) => {
            match check_owner(own, marker) {
                Ok(()) if marker.volume == own.volume => return Ok(marker),
                Ok(()) => refuse_content(own, content),
                Err(why) => FormationStep::Refuse(why),
            }
        }
        _ => refuse_content(own, content),
    };
    Err(Box::new(step))
}

fn record_blank(own: &OwnMember<'_>, record: &FormationRecord) -> FormationStep {
    FormationStep::Record(with_own_member(own, record, |member| {
        *member = RecordedMember::on_volume(own.volume, true);
    }))
}

/// The recorded volume must never run again: EC2 has to say for a minute that it does not exist.
fn take_new_volume(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    recorded: &RecordedMember,
    content: &VolumeContent,
) -> FormationStep {
    let lost = &recorded.volume;
    if *content != VolumeContent::Blank {
        return refuse_content(own, content);
    }
    if own.gone_twice.contains(lost) {
        return record_blank(own, record);
    }
    if own.gone.contains(lost) {
        return wait_for_second_answer(own, lost);
    }
    FormationStep::Ask(format!(
        "a snapshot of etcd {} is to be restored on {lost} of member {}, but this instance holds {}: attach {lost}, or delete it if nothing \
         on it is needed",
        own.etcd, own.member, own.volume
    ))
}

fn refuse_content(own: &OwnMember<'_>, content: &VolumeContent) -> FormationStep {
    FormationStep::Refuse(format!(
        "a snapshot of etcd {} is to be restored on {} of member {}, but it {}. Restore on another member, or wipe it with wipefs and \
         blkdiscard if nothing on it is needed",
        own.etcd,
        own.volume,
        own.member,
        describe_content(content)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An operator can write by hand what kctl writes.
    #[test]
    fn the_documented_record_is_the_one_that_a_restore_begins_with() {
        let page = include_str!("../../../docs/operations/restore-by-hand.md");
        let (_, from) = page.split_once("```json\n").unwrap();
        let (json, _) = from.split_once("```").unwrap();
        let documented = FormationRecord::parse("documented", json.as_bytes()).unwrap();
        let next = documented.next.clone().unwrap();
        let before = FormationRecord {
            next: None,
            ..documented.clone()
        };
        let snapshot = next.snapshot().unwrap().clone();
        let begun = begin_restore(&before, "a", None, &next.token, snapshot).unwrap();
        assert_eq!(begun, documented);
        // Nothing but the state differs from what was there before.
        assert_eq!(begun.members, before.members);
    }
}
