//! Decides the steps of an etcd cluster that does not exist yet, or whose record was lost. It is founded only if the record has no id of
//! etcd and names this volume, every recorded volume was seen blank, and the volume's marker has the record's token.

use super::advice::describe_restore;
use super::choose::{SeenVolume, volumes_of_members};
use super::content::{EtcdLog, FileSystemContent, Marker, VolumeContent};
use super::forget::set_old_aside;
use super::formed::check_copy;
use super::own_member::{OwnMember, with_own_member};
use super::record::{FormationRecord, Generation, RecordedMember, RetiredCluster, record_key};
use super::retired::stopped_for_good;
use super::step::{FormationStep, wait_for_second_answer};
use super::successors::find_successor;
use super::table::Row;
use super::volume_owner::{check_log, check_owner, describe_content};
use node::components::EtcdStart;
use std::collections::BTreeMap;

type WithoutRecord = fn(&OwnMember<'_>, &VolumeContent) -> Option<FormationStep>;

/// There is no record.
pub(super) const WITHOUT_RECORD: [Row<WithoutRecord>; 3] = [
    Row {
        when: "blank, every member of the spec has one volume, and neither `backups/etcd/main/` nor `etcd/formed/main/` has an object (backups that \
               `kctl delete cluster` kept do not count)",
        then: "write a record without `clusterId`, with a new token and every member's volume, this one marked as seen blank",
        step: |own, content| (*content == VolumeContent::Blank).then(|| found_cluster(own)),
    },
    Row {
        when: "this member's marker with its cluster's id, and its log; every member of the spec has one volume, and this volume is not a copy, \
               except of a lone member's volume that is gone",
        then: "write a record with that `clusterId`: the record was lost",
        step: |own, content| {
            let (marker, log) = content.marked()?;
            let has_data = *log != EtcdLog::Missing || marker.has_run();
            has_data.then(|| adopt_cluster(own, marker, log).unwrap_or_else(FormationStep::Refuse))
        },
    },
    Row {
        when: "anything else",
        then: "refuse",
        step: |own, content| {
            Some(FormationStep::Refuse(format!(
                "{} {}, and the state store has no record of etcd {}: restore {}, or, if nothing on the volume is needed, wipe it with wipefs \
                 and blkdiscard",
                own.volume,
                describe_content(content),
                own.etcd,
                record_key(own.etcd)
            )))
        },
    },
];

type WhileForming = fn(&OwnMember<'_>, &Forming<'_>, &VolumeContent) -> Option<FormationStep>;

/// The record has no id of etcd.
pub(super) const FORMING: [Row<WhileForming>; 9] = [
    Row {
        when: "it is not the volume that the record names",
        then: "record this volume, if it is blank, nobody has seen the other, and EC2 said twice, a minute apart, that it does not exist; otherwise \
               start nothing",
        step: |own, of, content| {
            (of.recorded.volume != own.volume).then(|| form_on_other_volume(own, of, content))
        },
    },
    Row {
        when: "blank, and not recorded as blank",
        then: "record it as blank",
        step: |own, of, content| {
            let is_new = *content == VolumeContent::Blank && !of.recorded.blank;
            is_new.then(|| {
                let seen = with_own_member(own, of.record, |member| member.blank = true);
                FormationStep::Record(seen)
            })
        },
    },
    Row {
        when: "blank; or a half-made file system, on a volume that was recorded as blank",
        then: "create a file system",
        step: |own, of, content| match content {
            VolumeContent::Blank => Some(FormationStep::Format),
            // The volume was recorded as blank, so this can only be an interrupted mkfs.
            VolumeContent::Unrecognized if of.was_blank(own) => Some(FormationStep::Format),
            _ => None,
        },
    },
    Row {
        when: "an empty file system, on a volume that was recorded as blank",
        then: "write the marker with the record's token",
        step: |own, of, content| {
            let is_empty = *content == VolumeContent::FileSystem(FileSystemContent::Nothing);
            (is_empty && of.was_blank(own)).then(|| FormationStep::Mark {
                marker: own.new_marker(of.token()),
                new: true,
            })
        },
    },
    Row {
        when: "data or a marker of an etcd cluster that was given up",
        then: "stop, move the data aside, write the marker with the record's token; then record it as prepared, which counts as blank below, but \
               never allows a file system to be made",
        step: |own, of, content| {
            let marked = own_marked(own, content)?;
            set_old_aside(own, of.record, &own.new_marker(of.token()), marked)
        },
    },
    Row {
        when: "this member's marker, of another formation or another volume",
        then: "leave running what runs, start nothing",
        step: |own, of, content| {
            let (marker, _) = content.marked()?;
            check_owner(own, marker).ok()?;
            let is_other = marker.token != *of.token() || marker.volume != own.volume;
            is_other.then(|| {
                FormationStep::Ask(format!(
                    "{} was prepared by another formation of etcd {}: wipe it with wipefs and blkdiscard if nothing on it is needed",
                    own.volume, own.etcd
                ))
            })
        },
    },
    Row {
        when: "the marker with that token and a cluster id, and its log",
        then: "write the record with that `clusterId`: an older version of the record was restored",
        step: |own, of, content| {
            let (marker, log) = own_marked(own, content)?;
            let cluster_id = marker.cluster_id.as_ref()?;
            let step = restore_formed(own, of.record, cluster_id, marker, log);
            Some(step.unwrap_or_else(FormationStep::Refuse))
        },
    },
    Row {
        when: "the marker with that token, with its log or, before the member has run, without",
        then: "start as `new` once every member was seen blank; the marker gets the member id; once all members are up, write etcd's cluster id into \
               the record",
        step: |own, of, content| {
            let (marker, log) = own_marked(own, content)?;
            let step = start_new(own, of.record, of.token(), marker, log);
            Some(step.unwrap_or_else(FormationStep::Refuse))
        },
    },
    Row {
        when: "anything else",
        then: "refuse",
        step: |own, _, content| Some(refuse_to_form(own, content)),
    },
];

/// The record of a cluster that is being founded, and what it says of this member.
pub(super) struct Forming<'a> {
    pub record: &'a FormationRecord,
    pub recorded: &'a RecordedMember,
}

impl Forming<'_> {
    fn token(&self) -> &String {
        &self.record.generation.token
    }

    /// True if nothing was on the volume, be it for a member that was given up before its cluster was founded.
    fn was_blank(&self, own: &OwnMember<'_>) -> bool {
        self.recorded.blank || self.record.was_blank(own.member, own.volume)
    }
}

/// Marker and log of this member on this volume.
fn own_marked<'a>(
    own: &OwnMember<'_>,
    content: &'a VolumeContent,
) -> Option<(&'a Marker, &'a EtcdLog)> {
    let marked = content.marked();
    marked.filter(|(of, _)| check_owner(own, of).is_ok() && of.volume == own.volume)
}

fn refuse_to_form(own: &OwnMember<'_>, content: &VolumeContent) -> FormationStep {
    let foreign = content.marked().map(|(marker, _)| check_owner(own, marker));
    if let Some(Err(why)) = foreign {
        return FormationStep::Refuse(why);
    }
    FormationStep::Refuse(format!(
        "etcd {} is being formed, but {} {}: a cluster is founded on blank volumes only; wipe it with wipefs and blkdiscard if nothing on it \
         is needed",
        own.etcd,
        own.volume,
        describe_content(content)
    ))
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
        Generation::forming(own.token),
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
        Generation::formed(cluster_id, &marker.token),
        volumes.into_iter().map(recorded).collect(),
    );
    // Who were their members is not known any more.
    let replaced = own.formed.and_then(|formed| formed.get(cluster_id));
    let replaced = replaced.into_iter().flatten();
    let given_up = |id: &String| {
        let retired = RetiredCluster {
            given_up: true,
            ..RetiredCluster::default()
        };
        (id.clone(), retired)
    };
    record.retired = replaced.map(given_up).collect();
    Ok(FormationStep::Record(record))
}

/// The instance holds another volume than the one that is recorded for the formation.
fn form_on_other_volume(
    own: &OwnMember<'_>,
    Forming { record, recorded }: &Forming<'_>,
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
        generation: Generation::formed(cluster_id, &marker.token),
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
