//! What a machine does with the volume it holds: pure, from the record and what the volume holds to the next step. After
//! each step everything is looked at again, so that a machine that died between two of them goes on where it was.
//!
//! Only one state of things founds an etcd cluster: the record says `forming`, names this volume, every member in it was
//! seen blank, and the volume's marker has the record's token. All else starts what is there, waits, or is refused.

use super::SeenVolume;
use super::choose::volumes_of_members;
use super::content::{Content, Inside, Marker};
use super::record::{FORMAT, Record, RecordedMember, State};
use crate::components::EtcdStart;

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
    /// The token of a record to be made: used once, never the same.
    pub token: &'a str,
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
    /// Not without an operator: why, and what to do.
    Refuse(String),
}

/// The next step.
pub fn decide(own: &Own<'_>, record: Option<&Record>, content: &Content) -> Step {
    let Some(record) = record else {
        return without_record(own, content);
    };
    let Some(recorded) = record.members.get(own.member) else {
        return Step::Refuse(format!(
            "etcd {} was formed without member {}, and this release adds no members: restore a snapshot into a cluster of \
             all members",
            own.etcd, own.member
        ));
    };
    match &record.state {
        State::Forming { token } => forming(own, record, recorded, token, content),
        State::Formed { cluster_id, token } => {
            let formed = Formed { cluster_id, token };
            of_formed(own, record, recorded, &formed, content)
        }
        State::Restoring { snapshot, .. } => Step::Wait(format!(
            "etcd {} is being restored from {snapshot}, which this release does not do: run the release that began it",
            own.etcd
        )),
    }
}

/// The record of a cluster whose members run: none to write if it says so already.
pub fn formed(record: &Record, cluster_id: &str) -> Option<Record> {
    let State::Forming { token } = &record.state else {
        return None;
    };
    Some(Record {
        state: State::Formed {
            cluster_id: cluster_id.to_owned(),
            token: token.clone(),
        },
        ..record.clone()
    })
}

/// Why what runs is not what the record says, if it is not.
pub fn stray(record: &Record, running: &str) -> Option<String> {
    match &record.state {
        State::Formed { cluster_id, .. } if cluster_id != running => Some(format!(
            "the etcd that runs is cluster {running}, and the record says {cluster_id}: its volume holds another \
             cluster's data"
        )),
        _ => None,
    }
}

fn without_record(own: &Own<'_>, content: &Content) -> Step {
    match content {
        Content::Blank => found(own),
        Content::FileSystem(Inside::Marked { marker, data: true }) => adopt(own, marker),
        _ => Step::Refuse(format!(
            "{} {}, and the state store has no record of etcd {}: bring back the record, or, if nothing on the volume is \
             wanted, wipe it with wipefs and blkdiscard",
            own.volume,
            holds(content),
            own.etcd
        )),
    }
}

/// The record of a cluster to be formed, which names every member's volume, and this one as seen blank.
fn found(own: &Own<'_>) -> Step {
    let volumes = volumes_of_members(own.members, own.seen, None);
    if let Some(missing) = own.members.iter().find(|one| !volumes.contains_key(*one)) {
        return Step::Wait(format!("member {missing} has no volume yet, or several"));
    }
    let recorded = |(member, volume): (String, &SeenVolume)| {
        let blank = member == own.member;
        let volume = volume.id.clone();
        (member, RecordedMember { volume, blank })
    };
    let record = Record {
        format: FORMAT,
        state: State::Forming {
            token: own.token.to_owned(),
        },
        members: volumes.into_iter().map(recorded).collect(),
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

/// The record is lost, and the volume says of what cluster its data is: the record of a formed cluster founds nothing.
fn adopt(own: &Own<'_>, marker: &Marker) -> Step {
    let cluster_id = match (whose(own, marker), &marker.cluster_id) {
        (Err(why), _) => return Step::Refuse(why),
        (Ok(()), None) => {
            return Step::Refuse(format!(
                "{} holds data of an etcd cluster that was being formed, and the record of that is gone: bring it back",
                own.volume
            ));
        }
        (Ok(()), Some(cluster_id)) => cluster_id.clone(),
    };
    let volumes = volumes_of_members(own.members, own.seen, None);
    let recorded = |(member, volume): (String, &SeenVolume)| {
        let volume = volume.id.clone();
        (
            member,
            RecordedMember {
                volume,
                blank: true,
            },
        )
    };
    Step::Record(Record {
        format: FORMAT,
        state: State::Formed {
            cluster_id,
            token: marker.token.clone(),
        },
        members: volumes.into_iter().map(recorded).collect(),
    })
}

fn forming(
    own: &Own<'_>,
    record: &Record,
    recorded: &RecordedMember,
    token: &str,
    content: &Content,
) -> Step {
    if recorded.volume != own.volume {
        return Step::Refuse(format!(
            "etcd {} is being formed on {} for member {}, and this machine holds {}: give it that volume, or, if this \
             cluster never was up, remove the record from the state store",
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
    };
    match content {
        Content::Blank if !recorded.blank => {
            let mut record = record.clone();
            if let Some(own) = record.members.get_mut(own.member) {
                own.blank = true;
            }
            Step::Record(record)
        }
        Content::Blank => Step::Format,
        // Nothing but a file system half made can be on what was blank when it was recorded.
        Content::Unrecognized if recorded.blank => Step::Format,
        Content::FileSystem(Inside::Nothing) if recorded.blank => Step::Mark {
            marker: marker(token),
            new: true,
        },
        Content::FileSystem(Inside::Marked { marker, .. }) => match whose(own, marker) {
            Err(why) => Step::Refuse(why),
            Ok(()) if marker.token != token || marker.volume != own.volume => {
                Step::Refuse(format!(
                    "{} was prepared under another formation of etcd {}: wipe it with wipefs and blkdiscard if nothing on it \
                     is wanted",
                    own.volume, own.etcd
                ))
            }
            Ok(()) => start_new(record, token),
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

/// All members start together, once none of them can hold an older cluster's data.
fn start_new(record: &Record, token: &str) -> Step {
    let unseen = record.members.iter().filter(|(_, one)| !one.blank);
    let unseen: Vec<&str> = unseen.map(|(member, _)| member.as_str()).collect();
    if unseen.is_empty() {
        return Step::Start(EtcdStart::New {
            token: token.to_owned(),
        });
    }
    let unseen = unseen.join(", ");
    Step::Wait(format!(
        "nobody has seen yet that the volume of {unseen} is blank"
    ))
}

struct Formed<'a> {
    cluster_id: &'a str,
    token: &'a str,
}

fn of_formed(
    own: &Own<'_>,
    record: &Record,
    recorded: &RecordedMember,
    formed: &Formed<'_>,
    content: &Content,
) -> Step {
    let Content::FileSystem(Inside::Marked { marker, data: true }) = content else {
        return Step::Refuse(format!(
            "etcd {} is formed, and {} {}: a blank volume founds no second cluster over it; restore a snapshot, or give \
             member {} its volume {} back",
            own.etcd,
            own.volume,
            holds(content),
            own.member,
            recorded.volume
        ));
    };
    if let Err(why) = whose(own, marker) {
        return Step::Refuse(why);
    }
    let same_cluster = match &marker.cluster_id {
        Some(cluster_id) => cluster_id == formed.cluster_id,
        // It died after the record was written and before the marker was.
        None => marker.token == formed.token,
    };
    if !same_cluster {
        return Step::Refuse(format!(
            "{} holds data of another etcd cluster than the recorded {}",
            own.volume, formed.cluster_id
        ));
    }
    if recorded.volume != own.volume {
        return moved(own, record, recorded);
    }
    if marker.cluster_id.is_none() || marker.volume != own.volume {
        let marker = Marker {
            volume: own.volume.to_owned(),
            cluster_id: Some(formed.cluster_id.to_owned()),
            ..marker.clone()
        };
        return Step::Mark { marker, new: false };
    }
    Step::Start(EtcdStart::Existing)
}

/// A copy of the member's volume, from a snapshot of EBS. Alone it is the cluster, as old as the copy; among others it would
/// have forgotten what it agreed to.
fn moved(own: &Own<'_>, record: &Record, recorded: &RecordedMember) -> Step {
    let there = own.seen.iter().any(|volume| volume.id == recorded.volume);
    if record.members.len() > 1 || there {
        return Step::Refuse(format!(
            "{} is a copy of member {}'s volume {}: a member that forgets what it agreed to breaks the others; restore a \
             snapshot of etcd instead",
            own.volume, own.member, recorded.volume
        ));
    }
    let mut record = record.clone();
    if let Some(member) = record.members.get_mut(own.member) {
        own.volume.clone_into(&mut member.volume);
    }
    Step::Record(record)
}

/// The marker is of this member of this cluster.
fn whose(own: &Own<'_>, marker: &Marker) -> Result<(), String> {
    let said = [&marker.cluster, &marker.etcd, &marker.member];
    if said.map(String::as_str) == [own.cluster, own.etcd, own.member] {
        return Ok(());
    }
    Err(format!(
        "{} holds data of member {} of etcd {} of {}: its tags are wrong",
        own.volume, marker.member, marker.etcd, marker.cluster
    ))
}

fn holds(content: &Content) -> String {
    match content {
        Content::Blank => "is blank".to_owned(),
        Content::Unrecognized => "holds something that no tool knows".to_owned(),
        Content::Other(what) => format!("holds {what}"),
        Content::FileSystem(Inside::Nothing) => "holds an empty file system".to_owned(),
        Content::FileSystem(Inside::Marked { data: true, .. }) => "holds etcd's data".to_owned(),
        Content::FileSystem(Inside::Marked { data: false, .. }) => {
            "was prepared for etcd and holds no data".to_owned()
        }
        Content::FileSystem(Inside::Unmarked(names)) => {
            format!("holds {} and other things", names.join(", "))
        }
    }
}
