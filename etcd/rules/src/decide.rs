//! Decides the next step for the volume that an instance holds, from the record and the volume's content. After each step
//! everything is observed again, so an instance that dies between two steps continues where it was.
//!
//! An etcd cluster is founded only if the record says `forming` and names this volume, every recorded volume was seen blank, and
//! the volume's marker has the record's token. In all other cases the existing member is started, waited for, or refused.

use super::SeenVolume;
use super::choose::volumes_of_members;
use super::content::{EtcdLog, FileSystemContent, JoiningMember, Marker, VolumeContent};
use super::forget::set_old_aside;
use super::formed::{Formed, check_copy, decide_formed, wait_for_second_answer, with_own_member};
use super::given_up::{is_given_up, may_begin, stopped_for_good, was_blank};
use super::leave::{MemberAnswers, decide_removed};
use super::log::LogIdentity;
use super::member_status::RunningMember;
use super::record::{
    FormationRecord, FormationState, RecordedMember, RestoredSnapshot, record_key,
};
use super::recover::decide_recovering;
use super::replace::{LiveCluster, MemberChange, begin_replacement};
use super::restore::describe_restore;
use super::successors::{FormedClusters, find_successor};
use super::volume_owner::{check_log, check_owner, describe_content};
use node::components::EtcdStart;
use node::formatted::{FORMAT, UnknownFields};
use std::collections::{BTreeMap, BTreeSet};

/// The member whose volume an instance holds, and what the instance knows.
#[derive(Clone, Copy, Debug)]
pub struct OwnMember<'a> {
    /// Name of the Kubernetes cluster.
    pub cluster: &'a str,
    /// Name of the etcd cluster: `main`, `events`.
    pub etcd: &'a str,
    /// Names of all members: those of the spec, of the record and of the tags of volumes, since this instance's spec may be older.
    pub members: &'a [String],
    /// Version of etcd on this instance: `3.6.12`.
    pub version: &'a str,
    /// Name of this member.
    pub member: &'a str,
    /// Id of this member's volume, `vol-...`.
    pub volume: &'a str,
    /// All volumes of the etcd cluster that EC2 shows.
    pub seen: &'a [SeenVolume],
    /// Volumes for which EC2 answered, asked by id, that they do not exist. A volume that is only missing in a list does not count.
    pub gone: &'a BTreeSet<String>,
    /// Those of them for which EC2 has answered so twice, a minute apart.
    pub gone_twice: &'a BTreeSet<String>,
    /// Volumes that EC2 has shown twice, a minute apart, as attached to nothing.
    pub free_twice: &'a BTreeSet<String>,
    /// The live list of members, or why it could not be had; `None` until [`FormationStep::ListMembers`] asks for it.
    pub live: Option<Result<&'a LiveCluster, &'a str>>,
    /// What the other members say about themselves, by their short names, or why they do not; `None` until [`FormationStep::AskPeers`]
    /// asks for it.
    pub peers: Option<&'a BTreeMap<String, Result<RunningMember, String>>>,
    /// Version in the manifest on the volume, which was the last that kubelet saw, if it names one.
    pub manifest_version: Option<&'a str>,
    /// What the members in the live list say about themselves; `None` until [`FormationStep::AskMembers`] asks for it.
    pub answers: Option<&'a MemberAnswers>,
    /// True if kubelet sees the manifest on this volume.
    pub shown: bool,
    /// A fresh random token for a new record.
    pub token: &'a str,
    /// If there is no record: the key of an object in the state store which shows that the etcd cluster existed before.
    pub trace: Option<&'a str>,
    /// The etcd clusters of this name that were formed. `None`: nobody has looked, because the member runs already.
    pub formed: Option<&'a FormedClusters>,
}

impl OwnMember<'_> {
    /// The marker of a member that has not run yet.
    pub(super) fn new_marker(&self, token: &str) -> Marker {
        Marker {
            format: FORMAT,
            cluster: self.cluster.to_owned(),
            etcd: self.etcd.to_owned(),
            member: self.member.to_owned(),
            volume: self.volume.to_owned(),
            token: token.to_owned(),
            cluster_id: None,
            member_id: None,
            joins: None,
            etcd_version: None,
            stopped: None,
            last_seen: None,
            unknown: UnknownFields::new(),
        }
    }
}

/// The next step for a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormationStep {
    /// Write this record, provided that the stored one has not changed since it was read.
    Record(FormationRecord),
    /// Make a file system; the volume was blank.
    Format,
    /// Write the marker, and create the data folder if the member starts for the first time.
    Mark {
        marker: Marker,
        /// True if the data folder must be created.
        new: bool,
    },
    /// Move the lost data aside on its volume, and prepare the volume for a new member with this marker.
    SetAside { marker: Marker },
    /// Write this marker, and let kubelet start the member with an empty data folder, to join its cluster for the first time.
    Join {
        marker: Marker,
        /// What the marker says of it.
        joins: JoiningMember,
    },
    /// Let kubelet start the member.
    Start(EtcdStart),
    /// Stop the member and hide it from kubelet; once it is stopped, write this marker, and record that with [`super::mark_stopped`].
    Stop {
        /// The marker of the volume's data; `None` if the volume holds no data of a member.
        marker: Option<Marker>,
    },
    /// Make sure that this instance can restore the member's data, then write this record like [`Self::Record`].
    PrepareRestore(FormationRecord),
    /// Stop the member. If [`super::find_newer`] finds nothing, restore its data as the log of a new cluster beside it, and record that
    /// with [`super::end_recovery`].
    Restore {
        /// `initial-cluster-token` of the new cluster.
        token: String,
        /// The data has at least this revision.
        revision: Option<u64>,
        /// Restored in the place of the member's data, which may be of any age then.
        snapshot: Option<RestoredSnapshot>,
    },
    /// Move the old data aside, put the restored data in its place, and write this marker.
    UseRestored {
        marker: Marker,
        /// The ids of the restored log.
        restored: LogIdentity,
        /// What was restored in the place of the member's data.
        snapshot: Option<RestoredSnapshot>,
    },
    /// The data is of the etcd minor before: prove a copy of it with this instance's etcd, keep another copy, and write this marker.
    Upgrade {
        marker: Marker,
        /// True if the lists of members in etcd's v2 and v3 store must be equal, because another one is believed from now on.
        compare_members: bool,
    },
    /// Ask each other recorded member about itself, and decide again.
    AskPeers,
    /// Let kubelet start the member, as one of an existing cluster, and report what the removal of another one waits for.
    Continue { waits: String },
    /// Ask the other members for the live list, which needs a quorum, and decide again.
    ListMembers,
    /// Ask every member in the live list what it says about itself, and decide again.
    AskMembers,
    /// Change the list of members. The id of an added one goes into the record at once. One that shall vote has to run.
    Change(MemberChange),
    /// Wait for other members or volumes; the text is the reason.
    Wait(String),
    /// Hide the member's manifest from kubelet. Nobody has to act; the text is the reason.
    Withdraw(String),
    /// Do not run the data on the volume and hide its manifest from kubelet. An operator must act; the text says why and how.
    Refuse(String),
    /// Record and volume contradict each other. A running member continues, and nothing new begins. An operator must act; the text
    /// says why and how.
    Ask(String),
}

impl FormationStep {
    /// True if the step writes to the file system of the volume, which must be mounted.
    pub fn writes_to_volume(&self) -> bool {
        matches!(
            self,
            Self::Mark { .. }
                | Self::SetAside { .. }
                | Self::Join { .. }
                | Self::Start(_)
                | Self::Restore { .. }
                | Self::UseRestored { .. }
        )
    }
}

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
    let was_blank = recorded.blank || was_blank(own, record);
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
