//! The member whose volume an instance holds: what the instance knows of it and of its etcd cluster, and what is recorded of it.

use super::choose::SeenVolume;
use super::content::Marker;
use super::live::LiveCluster;
use super::member_status::RunningMember;
use super::record::{FormationRecord, FormedClusters, RecordedMember};
use node::formatted::{FORMAT, UnknownFields};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What members say about themselves, by their short names, or why they do not.
pub type Peers = BTreeMap<String, Result<RunningMember, String>>;

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
    /// The live list of members, or why it could not be had. It was read before the volume was looked at: a member that is listed as started
    /// has had its log.
    pub live: Result<&'a LiveCluster, &'a str>,
    /// What each member, this one included, says about itself, by its short name, or why it does not.
    pub peers: &'a Peers,
    /// Version in the manifest on the volume, which was the last that kubelet saw, if it names one.
    pub manifest_version: Option<&'a str>,
    /// True if kubelet sees the manifest on this volume.
    pub shown: bool,
    /// A fresh random token for a new record.
    pub token: &'a str,
    /// If there is no record: the key of an object in the state store which shows that the etcd cluster existed before.
    pub trace: Option<&'a str>,
    /// The etcd clusters of this name that were formed. `None`: nobody has looked, because the member runs already.
    pub formed: Option<&'a FormedClusters>,
}

/// As in messages: `member a of etcd main`.
impl fmt::Display for OwnMember<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "member {} of etcd {}", self.member, self.etcd)
    }
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

/// The parts of a record of a formed cluster.
pub(super) struct Formed<'a> {
    pub record: &'a FormationRecord,
    pub recorded: &'a RecordedMember,
    pub cluster_id: &'a str,
    pub token: &'a str,
}

/// The record with a change to this instance's member.
pub(super) fn with_own_member(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    change: impl FnOnce(&mut RecordedMember),
) -> FormationRecord {
    let mut record = record.clone();
    if let Some(member) = record.members.get_mut(own.member) {
        change(member);
    }
    record
}
