//! What a machine does with the volume it holds: pure, from the record and what the volume holds to the next step. After
//! each step everything is looked at again, so that a machine that died between two of them goes on where it was.
//!
//! Only one state of things founds an etcd cluster: the record says `forming`, names this volume, every member in it was
//! seen blank, and the volume's marker has the record's token. All else starts what is there, waits, or is refused.

use super::SeenVolume;
use super::choose::volumes_of_members;
use super::content::{Content, Inside, Log, Marker};
use super::formed::{Formed, check_copy, of_formed, with_own};
use super::record::{FORMAT, Record, RecordedMember, State, Unknown, record_key};
use super::whose::{checked_log, holds, whose};
use crate::components::EtcdStart;
use std::collections::{BTreeMap, BTreeSet};

/// The member whose volume a machine holds.
#[derive(Clone, Copy, Debug)]
pub struct Own<'a> {
    /// The Kubernetes cluster's name.
    pub cluster: &'a str,
    /// `main`, `events`.
    pub etcd: &'a str,
    /// All members of the spec, by name.
    pub members: &'a [String],
    /// Which of them it is.
    pub member: &'a str,
    /// Its volume, `vol-...`.
    pub volume: &'a str,
    /// All volumes of the etcd cluster.
    pub seen: &'a [SeenVolume],
    /// Volumes of which EC2, asked for their ids, said that there are none. That its answers lack one says nothing.
    pub gone: &'a BTreeSet<String>,
    /// The token of a record to be made: used once, never the same.
    pub token: &'a str,
    /// The key in the state store of what says that the etcd cluster was there before, looked for where there is no record.
    pub trace: Option<&'a str>,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write this record, if the one that was read still stands.
    Record(Record),
    /// Make a file system: nothing is lost.
    Format,
    /// Write the marker, and make the data folder if this member is to start new.
    Mark {
        /// What it says.
        marker: Marker,
        /// The volume is new: make the data folder.
        new: bool,
    },
    /// Let kubelet run the member.
    Start(EtcdStart),
    /// Others come first: whom it waits for.
    Wait(String),
    /// What the volume holds is not run, not without an operator: why, and what to do. Kubelet is not to see it.
    Refuse(String),
    /// The record and the volume do not fit, not without an operator: why, and what to do. Nothing begins, and what runs goes on.
    Ask(String),
}

/// The next step.
pub fn decide(own: &Own<'_>, record: Option<&Record>, content: &Content) -> Step {
    if let Content::Damaged(why) = content {
        return Step::Refuse(format!(
            "the file system of {}, with member {} of etcd {}, has errors: {why}",
            own.volume, own.member, own.etcd
        ));
    }
    let Some(record) = record else {
        return without_record(own, content);
    };
    let Some(recorded) = record.members.get(own.member) else {
        return Step::Ask(format!(
            "etcd {} was formed without member {}, and this release adds no members: take member {} out of the spec",
            own.etcd, own.member, own.member
        ));
    };
    match &record.state {
        State::Forming { token, .. } => forming(own, record, recorded, token, content),
        State::Formed {
            cluster_id, token, ..
        } => {
            let formed = Formed {
                record,
                recorded,
                cluster_id,
                token,
            };
            of_formed(own, &formed, content)
        }
    }
}

fn without_record(own: &Own<'_>, content: &Content) -> Step {
    match content {
        Content::Blank => found(own),
        Content::FileSystem(Inside::Marked { marker, log })
            if *log != Log::Missing || marker.has_run() =>
        {
            adopt(own, marker, log).unwrap_or_else(Step::Refuse)
        }
        _ => Step::Refuse(format!(
            "{} {}, and the state store has no record of etcd {}: bring back {}, or, if nothing on the volume is \
             wanted, wipe it with wipefs and blkdiscard",
            own.volume,
            holds(content),
            own.etcd,
            record_key(own.etcd)
        )),
    }
}

/// The record of a cluster to be formed, which names every member's volume, and this one as seen blank.
///
/// A volume is blank also where the one before it was lost. So nothing else may say that the cluster was there.
fn found(own: &Own<'_>) -> Step {
    if let Some(trace) = own.trace {
        return Step::Refuse(format!(
            "{} is blank and the state store has no {}, but {trace} says that etcd {} was there before: no empty cluster is founded in \
             its place. Bring back the record and the volume (its EBS snapshots, the versions of the bucket); if etcd {} is to \
             begin empty, move {trace} and what lies beside it out of the cluster's folder",
            own.volume,
            record_key(own.etcd),
            own.etcd,
            own.etcd
        ));
    }
    let volumes = match volumes_of_all(own) {
        Ok(volumes) => volumes,
        Err(why) => return Step::Wait(why),
    };
    let recorded = |(member, volume): (String, &SeenVolume)| {
        let blank = member == own.member;
        (member, RecordedMember::on(&volume.id, blank))
    };
    let record = Record {
        format: FORMAT,
        state: State::forming(own.token),
        members: volumes.into_iter().map(recorded).collect(),
        unknown: Unknown::new(),
    };
    let names_own = record.members.get(own.member);
    if names_own.is_none_or(|one| one.volume != own.volume) {
        return Step::Wait(format!(
            "{} is not member {}'s volume",
            own.volume, own.member
        ));
    }
    Step::Record(record)
}

/// Every member's one volume. EC2's answers may lag behind what it was told, and a record without a member would keep it out.
fn volumes_of_all<'a>(own: &Own<'a>) -> Result<BTreeMap<String, &'a SeenVolume>, String> {
    let volumes = volumes_of_members(own.members, own.seen);
    match own.members.iter().find(|one| !volumes.contains_key(*one)) {
        Some(missing) => Err(format!(
            "there is no record of etcd {}, and member {missing} has no volume yet, or several: the record names one of each",
            own.etcd
        )),
        None => Ok(volumes),
    }
}

/// The record is lost, and the volume says of what cluster its data is: the record of a formed cluster founds nothing.
fn adopt(own: &Own<'_>, marker: &Marker, log: &Log) -> Result<Step, String> {
    whose(own, marker)?;
    let identity = checked_log(own, marker, log)?;
    let Some(cluster_id) = &marker.cluster_id else {
        return Ok(Step::Ask(format!(
            "{} holds data of an etcd cluster that was being formed, and {} is gone: bring it back",
            own.volume,
            record_key(own.etcd)
        )));
    };
    if marker.volume != own.volume {
        check_copy(own, &marker.volume, own.members.len())?;
    }
    let volumes = match volumes_of_all(own) {
        Ok(volumes) => volumes,
        Err(why) => return Ok(Step::Wait(why)),
    };
    let recorded = |(member, volume): (String, &SeenVolume)| {
        let member_id = (member == own.member).then(|| identity.member_id.clone());
        let recorded = RecordedMember {
            member_id,
            ..RecordedMember::on(&volume.id, true)
        };
        (member, recorded)
    };
    Ok(Step::Record(Record {
        format: FORMAT,
        state: State::formed(cluster_id, &marker.token),
        members: volumes.into_iter().map(recorded).collect(),
        unknown: Unknown::new(),
    }))
}

fn forming(
    own: &Own<'_>,
    record: &Record,
    recorded: &RecordedMember,
    token: &str,
    content: &Content,
) -> Step {
    if recorded.volume != own.volume {
        return Step::Ask(format!(
            "etcd {} is being formed on {} for member {}, and this machine holds {}: give it that volume. If that one is gone, this \
             cluster cannot be formed; it never served, so `kctl delete cluster` and `kctl create cluster` lose nothing of it",
            own.etcd, recorded.volume, own.member, own.volume
        ));
    }
    let marker = |token: &str| Marker {
        format: FORMAT,
        cluster: own.cluster.to_owned(),
        etcd: own.etcd.to_owned(),
        member: own.member.to_owned(),
        volume: own.volume.to_owned(),
        token: token.to_owned(),
        cluster_id: None,
        member_id: None,
        unknown: Unknown::new(),
    };
    match content {
        Content::Blank if !recorded.blank => {
            Step::Record(with_own(own, record, |member| member.blank = true))
        }
        Content::Blank => Step::Format,
        // Nothing but a file system half made can be on what was blank when it was recorded.
        Content::Unrecognized if recorded.blank => Step::Format,
        Content::FileSystem(Inside::Nothing) if recorded.blank => Step::Mark {
            marker: marker(token),
            new: true,
        },
        Content::FileSystem(Inside::Marked { marker, log }) => match whose(own, marker) {
            Err(why) => Step::Refuse(why),
            Ok(()) if marker.token != token || marker.volume != own.volume => Step::Ask(format!(
                "{} was prepared under another formation of etcd {}: wipe it with wipefs and blkdiscard if nothing on it \
                 is wanted",
                own.volume, own.etcd
            )),
            Ok(()) => match &marker.cluster_id {
                Some(cluster_id) => was_formed(own, record, cluster_id, marker, log),
                None => start_new(own, record, token, marker, log),
            }
            .unwrap_or_else(Step::Refuse),
        },
        _ => Step::Refuse(format!(
            "etcd {} is being formed and {} {}: a cluster is founded on blank volumes only; wipe it with wipefs and \
             blkdiscard if nothing on it is wanted",
            own.etcd,
            own.volume,
            holds(content)
        )),
    }
}

/// The volume says that the formation came to its end: the record is an older version of the object, brought back. By it machines would
/// wait for volumes to be seen blank that hold the cluster's data.
fn was_formed(
    own: &Own<'_>,
    record: &Record,
    cluster_id: &str,
    marker: &Marker,
    log: &Log,
) -> Result<Step, String> {
    let identity = checked_log(own, marker, log)?;
    let record = with_own(own, record, |member| {
        let known = &mut member.member_id;
        known.get_or_insert_with(|| identity.member_id.clone());
    });
    Ok(Step::Record(Record {
        state: State::formed(cluster_id, &marker.token),
        ..record
    }))
}

/// All members start together, once none of them can hold an older cluster's data. A member whose log was seen is known by its id
/// from then on: another log is not begun under it.
fn start_new(
    own: &Own<'_>,
    record: &Record,
    token: &str,
    marker: &Marker,
    log: &Log,
) -> Result<Step, String> {
    if *log != Log::Missing || marker.has_run() {
        let identity = checked_log(own, marker, log)?;
        if marker.member_id.is_none() {
            let marker = Marker {
                member_id: Some(identity.member_id.clone()),
                ..marker.clone()
            };
            return Ok(Step::Mark { marker, new: false });
        }
    }
    let unseen = record.members.iter().filter(|(_, one)| !one.blank);
    let unseen: Vec<&str> = unseen.map(|(member, _)| member.as_str()).collect();
    if unseen.is_empty() {
        return Ok(Step::Start(EtcdStart::New {
            token: token.to_owned(),
        }));
    }
    let unseen = unseen.join(", ");
    Ok(Step::Wait(format!(
        "nobody has seen yet that the volume of {unseen} is blank"
    )))
}
