//! Decides the next step for the volume that an instance holds, from the record and the volume's content. After each step
//! everything is observed again, so an instance that dies between two steps continues where it was.
//!
//! An etcd cluster is founded only if the record says `forming` and names this volume, every recorded volume was seen blank, and
//! the volume's marker has the record's token. In all other cases the existing member is started, waited for, or refused.

use super::advice::describe_restore;
use super::choose::{SeenVolume, volumes_of_members};
use super::content::{EtcdLog, FileSystemContent, Marker, VolumeContent};
use super::forget::set_old_aside;
use super::formed::{check_copy, decide_formed};
use super::given_up::{is_given_up, may_begin, stopped_for_good};
use super::leave::decide_removed;
use super::own_member::{Formed, OwnMember, with_own_member};
use super::record::{FormationRecord, FormationState, RecordedMember, record_key};
use super::recover::decide_recovering;
use super::replace::begin_replacement;
use super::step::{FormationStep, wait_for_second_answer};
use super::successors::find_successor;
use super::volume_owner::{check_log, check_owner, describe_content};
use node::components::EtcdStart;
use std::collections::BTreeMap;

/// Decides the next step for a member.
pub fn decide_step(
    own: &OwnMember<'_>,
    record: Option<&FormationRecord>,
    content: &VolumeContent,
) -> FormationStep {
    if let VolumeContent::Damaged(why) = content {
        return FormationStep::Refuse(format!(
            "the file system of {}, with member {} of etcd {}, has errors: {why}",
            own.volume, own.member, own.etcd
        ));
    }
    let Some(record) = record else {
        return decide_without_record(own, content);
    };
    let Some(recorded) = record.members.get(own.member) else {
        return decide_unrecorded(own, record, content);
    };
    match &record.state {
        FormationState::Forming { token, .. } => {
            decide_forming(own, record, recorded, token, content)
        }
        FormationState::Formed {
            cluster_id, token, ..
        } => {
            if let Some(why) = find_successor(own, cluster_id, Some(record)) {
                return FormationStep::Refuse(why);
            }
            let formed = Formed {
                record,
                recorded,
                cluster_id,
                token,
            };
            decide_formed(own, &formed, content)
        }
        FormationState::Recovering(recovering) => {
            decide_recovering(own, record, recovering, recorded, content)
        }
    }
}

/// A member that the spec has and the record has not. It joins on a blank volume.
fn decide_unrecorded(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    content: &VolumeContent,
) -> FormationStep {
    if record.has_left(own.member) {
        return decide_removed(own, record, content);
    }
    if own.shown && is_given_up(own, record, content) {
        return FormationStep::Withdraw(format!(
            "the data of member {} on {} is of an etcd cluster that was given up",
            own.member, own.volume
        ));
    }
    match (&record.state, content) {
        (FormationState::Formed { cluster_id, .. }, content) if may_begin(own, record, content) => {
            begin_replacement(own, record, cluster_id, content)
        }
        (FormationState::Recovering(recovering), _) => FormationStep::Wait(format!(
            "etcd {} is being recovered from member {}; member {} joins afterwards",
            own.etcd, recovering.from, own.member
        )),
        (FormationState::Forming { .. }, content) if may_begin(own, record, content) => {
            FormationStep::Wait(format!(
                "etcd {} is being formed without member {}, which joins afterwards",
                own.etcd, own.member
            ))
        }
        (_, content) => FormationStep::Ask(format!(
            "etcd {} is recorded without member {}, and {} {}: nothing on it is changed. A member is added on a blank volume; to add \
             this one anew, wipe {} with wipefs and blkdiscard; otherwise remove member {} from the spec",
            own.etcd,
            own.member,
            own.volume,
            describe_content(content),
            own.volume,
            own.member
        )),
    }
}

fn decide_without_record(own: &OwnMember<'_>, content: &VolumeContent) -> FormationStep {
    match content {
        VolumeContent::Blank => found_cluster(own),
        VolumeContent::FileSystem(FileSystemContent::Marked { marker, log })
            if *log != EtcdLog::Missing || marker.has_run() =>
        {
            adopt_cluster(own, marker, log).unwrap_or_else(FormationStep::Refuse)
        }
        _ => FormationStep::Refuse(format!(
            "{} {}, and the state store has no record of etcd {}: restore {}, or, if nothing on the volume is \
             needed, wipe it with wipefs and blkdiscard",
            own.volume,
            describe_content(content),
            own.etcd,
            record_key(own.etcd)
        )),
    }
}

/// Begins the formation: a record that names every member's volume, with this one marked as seen blank.
///
/// A replacement of a lost volume is blank too, so nothing in the state store may show that the cluster existed.
fn found_cluster(own: &OwnMember<'_>) -> FormationStep {
    if let Some(trace) = own.trace {
        return FormationStep::Refuse(format!(
            "{} is blank and the state store has no {}, but {trace} shows that etcd {} existed before, so no empty cluster is founded in \
             its place. Restore the record (from object versions of the bucket); then {}. If etcd {} should begin empty, move {trace} and \
             the objects beside it out of the cluster's folder",
            own.volume,
            record_key(own.etcd),
            own.etcd,
            describe_restore(own.cluster, own.etcd),
            own.etcd
        ));
    }
    let volumes = match volumes_of_all(own) {
        Ok(volumes) => volumes,
        Err(why) => return FormationStep::Wait(why),
    };
    let recorded = |(member, volume): (String, &SeenVolume)| {
        let blank = member == own.member;
        (member, RecordedMember::on_volume(&volume.id, blank))
    };
    let record = FormationRecord::new(
        FormationState::forming(own.token),
        volumes.into_iter().map(recorded).collect(),
    );
    let names_own = record.members.get(own.member);
    if names_own.is_none_or(|one| one.volume != own.volume) {
        return FormationStep::Wait(format!(
            "{} is not the volume of member {}",
            own.volume, own.member
        ));
    }
    FormationStep::Record(record)
}

/// The volume of every member. Fails if one is missing: EC2's answers may be old, and a record without a member would exclude it.
fn volumes_of_all<'a>(own: &OwnMember<'a>) -> Result<BTreeMap<String, &'a SeenVolume>, String> {
    let volumes = volumes_of_members(own.members, own.seen);
    match own.members.iter().find(|one| !volumes.contains_key(*one)) {
        Some(missing) => Err(format!(
            "there is no record of etcd {}, and member {missing} does not have exactly one volume, which the record needs",
            own.etcd
        )),
        None => Ok(volumes),
    }
}

/// Restores a lost record from a marker that names the formed cluster. A record of a formed cluster never founds one.
fn adopt_cluster(
    own: &OwnMember<'_>,
    marker: &Marker,
    log: &EtcdLog,
) -> Result<FormationStep, String> {
    check_owner(own, marker)?;
    let identity = check_log(own, marker, log, own.members.len())?;
    let Some(cluster_id) = &marker.cluster_id else {
        return Ok(FormationStep::Ask(format!(
            "{} holds data of an etcd cluster that was being formed, and {} is missing: restore it",
            own.volume,
            record_key(own.etcd)
        )));
    };
    if marker.stopped.is_some() {
        return Err(stopped_for_good(own));
    }
    if let Some(why) = find_successor(own, cluster_id, None) {
        return Err(why);
    }
    if marker.volume != own.volume {
        let waits = check_copy(own, &marker.volume, own.members.len())?;
        if let Some(wait) = waits {
            return Ok(wait);
        }
    }
    let volumes = match volumes_of_all(own) {
        Ok(volumes) => volumes,
        Err(why) => return Ok(FormationStep::Wait(why)),
    };
    let recorded = |(member, volume): (String, &SeenVolume)| {
        let is_own = member == own.member;
        let recorded = RecordedMember {
            member_id: is_own.then(|| identity.member_id.clone()),
            // Nobody has looked at the others' volumes.
            ..RecordedMember::on_volume(&volume.id, is_own)
        };
        (member, recorded)
    };
    let mut record = FormationRecord::new(
        FormationState::formed(cluster_id, &marker.token),
        volumes.into_iter().map(recorded).collect(),
    );
    // Who were their members is not known any more.
    let replaced = own.formed.and_then(|formed| formed.get(cluster_id));
    let replaced = replaced.into_iter().flatten();
    record.given_up = replaced.map(|id| (id.clone(), BTreeMap::new())).collect();
    Ok(FormationStep::Record(record))
}

fn decide_forming(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    recorded: &RecordedMember,
    token: &str,
    content: &VolumeContent,
) -> FormationStep {
    if recorded.volume != own.volume {
        return form_on_other_volume(own, record, recorded, content);
    }
    let fresh = own.new_marker(token);
    // It may have been blank for one that was given up before it was founded.
    let was_blank = recorded.blank || record.was_blank(own.member, own.volume);
    match content {
        VolumeContent::Blank if !recorded.blank => {
            FormationStep::Record(with_own_member(own, record, |member| member.blank = true))
        }
        VolumeContent::Blank => FormationStep::Format,
        // The volume was recorded as blank, so this can only be an interrupted mkfs.
        VolumeContent::Unrecognized if was_blank => FormationStep::Format,
        VolumeContent::FileSystem(FileSystemContent::Nothing) if was_blank => FormationStep::Mark {
            marker: fresh,
            new: true,
        },
        VolumeContent::FileSystem(FileSystemContent::Marked { marker, log }) => {
            match check_owner(own, marker) {
                Err(why) => FormationStep::Refuse(why),
                Ok(())
                    if marker.volume == own.volume
                        && let Some(step) = set_old_aside(own, record, &fresh, (marker, log)) =>
                {
                    step
                }
                Ok(()) if marker.token != token || marker.volume != own.volume => {
                    FormationStep::Ask(format!(
                        "{} was prepared by another formation of etcd {}: wipe it with wipefs and blkdiscard if nothing on it \
                 is needed",
                        own.volume, own.etcd
                    ))
                }
                Ok(()) => match &marker.cluster_id {
                    Some(cluster_id) => restore_formed(own, record, cluster_id, marker, log),
                    None => start_new(own, record, token, marker, log),
                }
                .unwrap_or_else(FormationStep::Refuse),
            }
        }
        _ => FormationStep::Refuse(format!(
            "etcd {} is being formed, but {} {}: a cluster is founded on blank volumes only; wipe it with wipefs and \
             blkdiscard if nothing on it is needed",
            own.etcd,
            own.volume,
            describe_content(content)
        )),
    }
}

/// The instance holds another volume than the one that is recorded for the formation.
fn form_on_other_volume(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    recorded: &RecordedMember,
    content: &VolumeContent,
) -> FormationStep {
    let is_empty = *content == VolumeContent::Blank && own.gone.contains(&recorded.volume);
    // Nobody has started, because nobody has seen this member's volume.
    if is_empty && !recorded.blank && !recorded.prepared {
        if !own.gone_twice.contains(&recorded.volume) {
            return wait_for_second_answer(own, &recorded.volume);
        }
        return FormationStep::Record(with_own_member(own, record, |member| {
            *member = RecordedMember::on_volume(own.volume, true);
        }));
    }
    let (cluster, etcd) = (own.cluster, own.etcd);
    let anew = match etcd {
        "events" => {
            format!("`kctl etcd forget {cluster} --etcd {etcd} --all --yes` founds it anew")
        }
        _ => "it never served, so `kctl delete cluster` and `kctl create cluster` lose no data"
            .to_owned(),
    };
    FormationStep::Ask(format!(
        "etcd {etcd} is being formed with {} for member {}, but this instance holds {}: attach the recorded volume. If it no longer exists, \
         the cluster cannot be formed with it; {anew}",
        recorded.volume, own.member, own.volume
    ))
}

/// The marker shows that the formation was completed, so the record is a restored older version. Following it, instances would
/// wait for volumes with the cluster's data to be blank.
fn restore_formed(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    cluster_id: &str,
    marker: &Marker,
    log: &EtcdLog,
) -> Result<FormationStep, String> {
    let identity = check_log(own, marker, log, record.data_members())?;
    let record = with_own_member(own, record, |member| {
        let known = &mut member.member_id;
        known.get_or_insert_with(|| identity.member_id.clone());
    });
    Ok(FormationStep::Record(FormationRecord {
        state: FormationState::formed(cluster_id, &marker.token),
        ..record
    }))
}

/// Starts the member once every recorded volume was seen blank. Once the member's log was seen, its id is in the marker, and no
/// other log is started.
fn start_new(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    token: &str,
    marker: &Marker,
    log: &EtcdLog,
) -> Result<FormationStep, String> {
    if marker.joins.is_some() {
        return Err(format!(
            "{} was prepared for a member that joins etcd {}, which exists, but the record says that it is being formed: restore {}",
            own.volume,
            own.etcd,
            record_key(own.etcd)
        ));
    }
    if *log != EtcdLog::Missing || marker.has_run() {
        let identity = check_log(own, marker, log, record.data_members())?;
        if marker.member_id.is_none() {
            let marker = Marker {
                member_id: Some(identity.member_id.clone()),
                ..marker.clone()
            };
            return Ok(FormationStep::Mark { marker, new: false });
        }
    }
    let unseen = record.unseen_members();
    let unseen = unseen.map(|(member, one)| format!("{} of member {member}", one.volume));
    let unseen: Vec<String> = unseen.collect();
    if unseen.is_empty() {
        return Ok(FormationStep::Start(EtcdStart::New {
            token: token.to_owned(),
            members: record.members.keys().cloned().collect(),
        }));
    }
    Ok(FormationStep::Wait(format!(
        "etcd {} is founded once every member's volume was seen, and no instance has taken {} yet",
        own.etcd,
        unseen.join(" and ")
    )))
}
