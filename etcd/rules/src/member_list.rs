//! Computes the list of members that etcd's v2 store has, from a stopped member's newest snapshot and log. etcd 3.5 believes that
//! list, and 3.6 the one in its database. Every rule is that of etcd (`server/etcdserver/server.go`, `applyConfChange`;
//! `server/etcdserver/api/membership/cluster.go`, `ValidateConfigurationChange`; `server/storage/wal/wal.go`, `ReadAll`).

use super::log::{ENTRY, NotALog, SNAPSHOT, STATE, bytes_field, number_field, split_record};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Members by etcd's id, hex.
pub type MemberList = BTreeMap<String, ListedPeer>;

/// A member of a [`MemberList`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedPeer {
    /// Sorted.
    pub peer_urls: Vec<String>,
    /// True if it does not vote.
    pub learner: bool,
}

/// What the files of a log say about the members.
#[derive(Clone, Debug, Default)]
pub struct MembershipLog {
    /// Index up to which the entries are known to be committed.
    commit: u64,
    /// Term and index of snapshots.
    snapshots: BTreeSet<(u64, u64)>,
    /// Changes with their index, in its order.
    changes: Vec<(u64, Change)>,
}

#[derive(Clone, Debug)]
struct Change {
    kind: u64,
    member: u64,
    context: Context,
}

/// What etcd writes about a changed member, as JSON.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Context {
    /// `null` in a promotion.
    #[serde(rename = "peerURLs")]
    peer_urls: Option<Vec<String>>,
    is_learner: bool,
    is_promote: bool,
}

/// Type of an entry with a change of members, and types of changes (`raftpb`).
const CONF_CHANGE: u64 = 1;
const ADD: u64 = 0;
const REMOVE: u64 = 1;
const UPDATE: u64 = 2;
const ADD_LEARNER: u64 = 3;

impl MembershipLog {
    /// Reads a file of the log; in the order of their names.
    pub fn read_file(&mut self, mut bytes: &[u8]) -> Result<(), NotALog> {
        // A log ends with zeros, or with a record that was never written completely.
        while let Ok((record, rest)) = split_record(bytes) {
            bytes = rest;
            let data = bytes_field(record, 3)?.unwrap_or_default();
            let number = |field| Ok(number_field(data, field)?.unwrap_or_default());
            match number_field(record, 1)? {
                Some(ENTRY) => self.read_entry(data)?,
                Some(STATE) => self.commit = number(3)?,
                Some(SNAPSHOT) => drop(self.snapshots.insert((number(2)?, number(1)?))),
                _ => {}
            }
        }
        Ok(())
    }

    fn read_entry(&mut self, entry: &[u8]) -> Result<(), NotALog> {
        const WRONG: NotALog = NotALog("a change of members is not JSON");
        let index = number_field(entry, 3)?.unwrap_or_default();
        // An entry takes the place of those with its index or a later one, which were never committed.
        self.changes.retain(|(known, _)| *known < index);
        if number_field(entry, 1)? != Some(CONF_CHANGE) {
            return Ok(());
        }
        let change = bytes_field(entry, 4)?.unwrap_or_default();
        let context = bytes_field(change, 4)?.unwrap_or_default();
        let change = Change {
            kind: number_field(change, 2)?.unwrap_or_default(),
            member: number_field(change, 3)?.unwrap_or_default(),
            context: match context {
                [] => Context::default(),
                json => serde_json::from_slice(json).map_err(|_| WRONG)?,
            },
        };
        self.changes.push((index, change));
        Ok(())
    }

    /// Index that a member has applied once it has read this log.
    pub fn commit(&self) -> u64 {
        self.commit
    }

    /// The name of the snapshot from which etcd starts; `None` if it starts from the beginning of the log. A file counts only if the
    /// log names it (`wal.ValidSnapshotEntries`).
    pub fn newest_snapshot(&self) -> Option<String> {
        let (term, index) = self.newest()?;
        Some(format!("{term:016x}-{index:016x}.snap"))
    }

    fn newest(&self) -> Option<(u64, u64)> {
        let valid = self.snapshots.iter();
        let valid = valid.filter(|(_, index)| *index > 0 && *index <= self.commit);
        valid.max_by_key(|(_, index)| *index).copied()
    }

    #[cfg(test)]
    pub(super) fn forget_snapshots(&mut self) {
        self.snapshots.clear();
    }

    #[cfg(test)]
    pub(super) fn set_commit(&mut self, commit: u64) {
        self.commit = commit;
    }

    /// The list of members at the end of the committed entries, and after each later change: etcd may have applied entries of which
    /// its log does not say yet that they are committed. `snapshot` is the content of [`Self::newest_snapshot`].
    pub fn member_lists(&self, snapshot: Option<&[u8]>) -> Result<Vec<MemberList>, NotALog> {
        let mut store = snapshot.map_or_else(|| Ok(Store::default()), Store::read)?;
        let begin = self.newest().map_or(0, |(_, index)| index);
        let later = self.changes.iter().filter(|(index, _)| *index > begin);
        let (committed, open): (Vec<_>, Vec<_>) = later.partition(|(at, _)| *at <= self.commit);
        for (_, change) in committed {
            store.apply(change);
        }
        let mut lists = vec![store.to_list()];
        for (_, change) in open {
            store.apply(change);
            lists.push(store.to_list());
        }
        Ok(lists)
    }
}

/// The members in the v2 store.
#[derive(Debug, Default)]
struct Store {
    members: BTreeMap<u64, ListedPeer>,
    removed: BTreeSet<u64>,
}

impl Store {
    /// Reads a snapshot: an envelope with a checksum (`snappb`), raft's snapshot, and in it the v2 store as JSON.
    fn read(file: &[u8]) -> Result<Self, NotALog> {
        const WRONG: NotALog = NotALog("the snapshot has no v2 store");
        let snapshot = bytes_field(file, 2)?.ok_or(WRONG)?;
        let json = bytes_field(snapshot, 1)?.ok_or(WRONG)?;
        let store: Value = serde_json::from_slice(json).map_err(|_| WRONG)?;
        let children = |path: &str| {
            let at = format!("/Root/Children/0/Children/{path}/Children");
            let found = store.pointer(&at).and_then(Value::as_object);
            let found = found.into_iter().flatten();
            found.filter_map(|(id, node)| Some((u64::from_str_radix(id, 16).ok()?, node)))
        };
        let mut own = Self::default();
        for (id, node) in children("members") {
            let value = node.pointer("/Children/raftAttributes/Value");
            let text = value.and_then(Value::as_str).ok_or(WRONG)?;
            let context = serde_json::from_str(text).map_err(|_| WRONG)?;
            own.members.insert(id, to_peer(&context));
        }
        own.removed = children("removed_members").map(|(id, _)| id).collect();
        Ok(own)
    }

    /// Changes the list, unless etcd refuses the change.
    fn apply(
        &mut self,
        Change {
            kind,
            member,
            context,
        }: &Change,
    ) {
        let known = self.members.get(member);
        let urls = to_peer(context).peer_urls;
        let is_url_taken = |but: Option<&u64>| {
            let mut others = self.members.iter().filter(|(id, _)| Some(*id) != but);
            let taken = |url: &String| urls.contains(url);
            others.any(|(_, other)| other.peer_urls.iter().any(taken))
        };
        match (*kind, known) {
            _ if self.removed.contains(member) => {}
            (ADD, Some(peer)) if context.is_promote && peer.learner => {
                let peer = ListedPeer {
                    learner: false,
                    ..peer.clone()
                };
                self.members.insert(*member, peer);
            }
            (ADD | ADD_LEARNER, None) if !context.is_promote && !is_url_taken(None) => {
                let is_second = || self.members.values().any(|one| one.learner);
                // etcd's `max-learners` is 1.
                if *kind == ADD || !is_second() {
                    self.members.insert(*member, to_peer(context));
                }
            }
            (UPDATE, Some(_)) if !is_url_taken(Some(member)) => {
                self.members.insert(*member, to_peer(context));
            }
            (REMOVE, Some(_)) => {
                self.members.remove(member);
                self.removed.insert(*member);
            }
            _ => {}
        }
    }

    fn to_list(&self) -> MemberList {
        let members = self.members.iter();
        members
            .map(|(id, peer)| (format!("{id:x}"), peer.clone()))
            .collect()
    }
}

fn to_peer(context: &Context) -> ListedPeer {
    let mut peer_urls = context.peer_urls.clone().unwrap_or_default();
    peer_urls.sort();
    ListedPeer {
        peer_urls,
        learner: context.is_learner,
    }
}

/// Parses the list that a member answers at `/members` of its peer port, which is that of its v3 store from 3.6 on.
pub fn parse_member_list(text: &str) -> Result<MemberList, serde_json::Error> {
    #[derive(Deserialize)]
    struct Member {
        id: u64,
        #[serde(flatten)]
        context: Context,
    }
    let members: Vec<Member> = serde_json::from_str(text)?;
    let entry = |member: Member| (format!("{:x}", member.id), to_peer(&member.context));
    Ok(members.into_iter().map(entry).collect())
}

/// How two lists differ, for a message; `None` if they are equal.
pub fn describe_difference(v2: &MemberList, v3: &MemberList) -> Option<String> {
    let describe = |peer: Option<&ListedPeer>| match peer {
        None => "not a member".to_owned(),
        Some(peer) => format!(
            "{} at {}",
            if peer.learner { "a learner" } else { "a voter" },
            peer.peer_urls.join(", ")
        ),
    };
    let ids: BTreeSet<&String> = v2.keys().chain(v3.keys()).collect();
    let differ = ids.into_iter().filter(|id| v2.get(*id) != v3.get(*id));
    let differ: Vec<String> = differ
        .map(|id| {
            let (v2, v3) = (describe(v2.get(id)), describe(v3.get(id)));
            format!("{id} is {v2} in the v2 store and {v3} in the v3 store")
        })
        .collect();
    (!differ.is_empty()).then(|| differ.join("; "))
}
