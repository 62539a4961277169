//! The formation record: one object per etcd cluster in the state store, changed only if it is still as it was read. An etcd cluster
//! is founded only under such a record. During an upgrade two releases share it: each reads the other's records and keeps fields
//! that it does not know.

use super::log_end::LastEntry;
use node::formatted::{Error, FORMAT, UnknownFields, parse_formatted, to_pretty_json};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The record of an etcd cluster's formation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FormationRecord {
    /// [`FORMAT`].
    pub format: u32,
    /// The etcd cluster that serves under this name, or is being founded.
    pub generation: Generation,
    /// The one that takes its place, because an operator has asked for it. As long as nobody has stopped for it, it can be called off: then
    /// this is `None` again, and nothing else has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextGeneration>,
    /// Members by their short name: `a`. The one that is being replaced is on its new volume here.
    pub members: BTreeMap<String, RecordedMember>,
    /// The member that is being replaced or added: one at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacing: Option<Replacing>,
    /// Members that the spec has no longer, by name. They are removed one at a time. An entry stays when its member is gone, so that
    /// an instance of an older configuration does not add it again, and until an update of a spec with that member takes it away.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub leaving: BTreeMap<String, Leaving>,
    /// What never runs again, by etcd's id of the cluster (hex); of one that was never formed, by its token. The data is kept on its volumes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retired: BTreeMap<String, RetiredCluster>,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// One life of an etcd cluster: it begins empty, with the data of a member or with a snapshot, and has one id of etcd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Generation {
    /// `initial-cluster-token` with which its members start or started.
    pub token: String,
    /// etcd's id of the cluster, hex. `None`: its members are new, and start once every volume was seen blank. With an id it exists, and is
    /// never founded again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// The snapshot with which it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<RestoredSnapshot>,
    /// The last restore or recovery that was asked for and did not begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedRestore>,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// The generation that an operator has asked for: it begins on one member, and all others stop before. See [`super::begin_recovery`] and
/// [`super::begin_restore`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NextGeneration {
    /// Short name of the member that it begins on: `a`.
    pub from: String,
    /// Its `initial-cluster-token`.
    pub token: String,
    /// What it begins with.
    pub source: Source,
    /// True once the instance of that member has what it needs to begin. The others stop only then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ready: bool,
    /// True if somebody may have stopped for another that was asked for before this one: it cannot be called off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_late: bool,
    /// Members whose etcd was stopped for it and is not started again, with the last entry of their log, read after they stopped. It is
    /// missing for a log that cannot be read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stopped: BTreeMap<String, Option<LastEntry>>,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// What a generation begins with that takes the place of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// The data of the member: more than half of the others are lost.
    Member(MemberSource),
    /// A snapshot, whatever became of the member's data. What was written since is given up.
    Snapshot(RestoredSnapshot),
}

/// The data of a member as a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberSource {
    /// True if the operator gives up what other members have and this one has not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// Revision of the member when the operator chose it: its data is not older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// What never runs again of an etcd cluster: single members, or all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetiredCluster {
    /// True if the cluster was given up for another: no data of it runs, whoever wrote it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given_up: bool,
    /// Its members that never run again, by short name, the last one at the end: they were removed or lost, or it was given up.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, Vec<RecordedMember>>,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// A member that is to be removed, see [`super::set_leaving`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Leaving {
    /// True once it may have been removed from etcd: from then on nobody can let it stay.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub begun: bool,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// A snapshot with which an etcd cluster begins anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoredSnapshot {
    /// Address of the backup store.
    pub store: String,
    /// Name of the snapshot in it.
    pub name: String,
    /// SHA-256 of the snapshot's file, uncompressed, hex.
    pub sha256: String,
    /// Size of that file, bytes.
    pub bytes: u64,
    /// Revision of the data, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// How many keys it holds, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<u64>,
    /// How much the revision is raised, so that it is above all that were used since.
    pub bump: u64,
    /// True if it is restored even if no API server can read its Secrets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreadable_secrets: bool,
    /// The changes after it that are restored too; `None`: the snapshot alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<RestoredChanges>,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// The changes after a snapshot with which an etcd cluster begins anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoredChanges {
    /// How many parts are replayed, from the first one on.
    pub parts: u32,
    /// SHA-256 of the content of the last one, hex.
    pub sha256: String,
    /// The last revision in it.
    pub revision: u64,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// A restore or recovery that did not begin: its snapshot turned out to be unusable, or somebody called it off, before any member was stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedRestore {
    /// `initial-cluster-token` of the cluster that it would have begun.
    pub token: String,
    /// What it would have begun with: the name of a snapshot, or `member a`.
    pub source: String,
    /// What is wrong with it, or who has called it off.
    pub why: String,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// A member in the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedMember {
    /// Volume id, `vol-...`.
    pub volume: String,
    /// True if an instance saw the volume blank before anything was written to it. From then on its content was written under this
    /// record, so an interrupted mkfs may be repeated.
    #[serde(default)]
    pub blank: bool,
    /// True once the volume was prepared for the cluster that is founded in the place of an old one: the old member was stopped, and
    /// its data moved aside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prepared: bool,
    /// etcd's id of the member, hex; set once it has run. An id has one log for its lifetime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_id: Option<String>,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// A member that is being replaced or added, under a new id. How far it is follows from the record, the volume and etcd's list of
/// members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Replacing {
    /// Short name: `a`.
    pub member: String,
    /// True if there was none before it. Otherwise the one whose data was lost is among the retired ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub added: bool,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// The ids of all etcd clusters of a name that were ever formed, each with those that were given up for it.
pub type FormedClusters = BTreeMap<String, BTreeSet<String>>;

/// Key of an etcd cluster's record, relative to the cluster's base in the state store.
pub fn record_key(etcd: &str) -> String {
    format!("etcd/{etcd}.json")
}

/// Prefix of the keys of an etcd cluster's backups, as in kOps.
pub fn backups_prefix(etcd: &str) -> String {
    format!("backups/etcd/{etcd}/")
}

/// Key of the object which shows that an etcd cluster's backups are of a cluster that was deleted, and do not show that one exists.
pub fn kept_backups_key(etcd: &str) -> String {
    format!("{}kept-after-delete", backups_prefix(etcd))
}

/// Prefix of the keys of objects which show, besides the record, that an etcd cluster was formed. With them a lost record is not
/// mistaken for one that never existed.
pub fn formed_prefix(etcd: &str) -> String {
    format!("etcd/formed/{etcd}/")
}

/// Key of the object which shows that the cluster with this id was formed.
pub fn formed_key(etcd: &str, cluster_id: &str) -> String {
    format!("{}{cluster_id}", formed_prefix(etcd))
}

impl FormationRecord {
    /// A record in which no member is being replaced, and nothing was retired.
    pub fn new(generation: Generation, members: BTreeMap<String, RecordedMember>) -> Self {
        Self {
            format: FORMAT,
            generation,
            next: None,
            members,
            replacing: None,
            leaving: BTreeMap::new(),
            retired: BTreeMap::new(),
            unknown: UnknownFields::new(),
        }
    }

    /// Parses a record; `what` names it in errors.
    pub fn parse(what: &str, bytes: &[u8]) -> Result<Self, Error> {
        parse_formatted(what, bytes)
    }

    /// The text that is stored.
    pub fn to_json(&self) -> String {
        to_pretty_json(self)
    }

    /// etcd's id of the cluster (hex) once it exists, whatever takes its place.
    pub fn cluster_id(&self) -> Option<&str> {
        self.generation.cluster_id.as_deref()
    }

    /// True until it exists.
    pub fn is_forming(&self) -> bool {
        self.generation.cluster_id.is_none()
    }

    /// etcd's id of the cluster (hex) if it exists and nothing is to take its place.
    pub fn formed_id(&self) -> Option<&str> {
        self.cluster_id().filter(|_| self.next.is_none())
    }

    /// True if the cluster exists and nothing is to take its place.
    pub fn is_formed(&self) -> bool {
        self.formed_id().is_some()
    }

    /// The token of the newest cluster that was asked for.
    pub fn newest_token(&self) -> &str {
        let next = self.next.as_ref();
        next.map_or(&self.generation.token, |next| &next.token)
    }

    /// How many members hold the cluster's data: one that is being added does not yet.
    pub fn data_members(&self) -> usize {
        let added = self.replacing.as_ref().is_some_and(|of| of.added);
        self.members.len() - usize::from(added)
    }

    /// True if a member of this name was removed, and none may be added.
    pub fn has_left(&self, member: &str) -> bool {
        self.leaving.contains_key(member) && !self.members.contains_key(member)
    }

    /// The members that are to be removed and have not been yet, with how far that is.
    pub fn pending_removals(&self) -> impl Iterator<Item = (&String, &Leaving)> {
        let leaving = self.leaving.iter();
        leaving.filter(|(member, _)| self.members.contains_key(*member))
    }

    /// The members that a cluster which is being founded waits for: nobody has seen their volumes.
    pub fn unseen_members(&self) -> impl Iterator<Item = (&String, &RecordedMember)> {
        let members = self.members.iter();
        members.filter(|(_, member)| !member.blank && !member.prepared)
    }

    /// All members of this name that never run again.
    pub fn retired_members<'a>(
        &'a self,
        member: &'a str,
    ) -> impl Iterator<Item = &'a RecordedMember> {
        let clusters = self.retired.values();
        clusters.flat_map(move |of| of.members.get(member).into_iter().flatten())
    }

    /// True if the etcd cluster with this id or token was given up.
    pub fn has_given_up(&self, cluster: &str) -> bool {
        let retired = self.retired.get(cluster);
        retired.is_some_and(|retired| retired.given_up)
    }

    /// The ids (or tokens) of the etcd clusters of this name that were given up.
    pub fn given_up(&self) -> impl Iterator<Item = &str> {
        let given_up = self.retired.iter().filter(|(_, retired)| retired.given_up);
        given_up.map(|(cluster, _)| cluster.as_str())
    }

    /// True if an etcd cluster of this name was given up for this one.
    pub fn began_anew(&self) -> bool {
        self.given_up().next().is_some()
    }

    /// True if the volume was seen blank for a member of this name that has not run since.
    pub(super) fn was_blank(&self, member: &str, volume: &str) -> bool {
        let own = self.members.get(member).into_iter();
        let mut all = own.chain(self.retired_members(member));
        all.any(|of| of.volume == volume && of.blank && of.member_id.is_none())
    }

    /// The generation that begins on the member `from`. Whoever has stopped for another one that was asked for before stays stopped; the
    /// member that was to begin that one stops now.
    pub(super) fn begin_next(&self, from: &str, token: &str, source: Source) -> NextGeneration {
        let before = self.next.as_ref();
        let mut stopped = before.map_or_else(BTreeMap::new, |before| before.stopped.clone());
        stopped.remove(from);
        NextGeneration {
            from: from.to_owned(),
            token: token.to_owned(),
            source,
            ready: false,
            is_late: before.is_some_and(|before| !before.has_stopped_nobody()),
            stopped,
            unknown: UnknownFields::new(),
        }
    }

    /// Writes down that a member of this cluster never runs again.
    pub fn retire_member(&mut self, member: &str, recorded: &RecordedMember) {
        let cluster = self.generation.known_as().to_owned();
        let retired = self.retired.entry(cluster).or_default();
        let before = retired.members.entry(member.to_owned()).or_default();
        if !before.contains(recorded) {
            before.push(recorded.clone());
        }
    }

    /// Writes down that no data of this cluster ever runs again, and puts another generation in its place.
    pub fn give_up(&mut self, successor: Generation) {
        for (member, recorded) in self.members.clone() {
            self.retire_member(&member, &recorded);
        }
        let cluster = self.generation.known_as().to_owned();
        self.retired.entry(cluster).or_default().given_up = true;
        self.generation = successor;
        self.next = None;
        self.replacing = None;
    }
}

impl Generation {
    /// One whose members will start with this token.
    pub fn forming(token: &str) -> Self {
        Self {
            token: token.to_owned(),
            cluster_id: None,
            restored: None,
            refused: None,
            unknown: UnknownFields::new(),
        }
    }

    /// One that exists, with this id and token.
    pub fn formed(cluster_id: &str, token: &str) -> Self {
        Self {
            cluster_id: Some(cluster_id.to_owned()),
            ..Self::forming(token)
        }
    }

    /// Under what its data is retired: etcd's id of the cluster, or its token if it was never formed.
    fn known_as(&self) -> &str {
        self.cluster_id.as_ref().unwrap_or(&self.token)
    }
}

impl NextGeneration {
    /// True if the operator gives up what the source has not.
    pub fn is_forced(&self) -> bool {
        match &self.source {
            Source::Member(member) => member.force,
            Source::Snapshot(_) => true,
        }
    }

    /// The snapshot that it begins with; `None`: it begins with the member's data.
    pub fn snapshot(&self) -> Option<&RestoredSnapshot> {
        match &self.source {
            Source::Member(_) => None,
            Source::Snapshot(snapshot) => Some(snapshot),
        }
    }

    /// True until the first member may stop for it.
    pub fn has_stopped_nobody(&self) -> bool {
        !self.ready && !self.is_late && self.stopped.is_empty()
    }
}

impl RecordedMember {
    /// A member on this volume, whose id is not known yet.
    pub fn on_volume(volume: &str, blank: bool) -> Self {
        Self {
            volume: volume.to_owned(),
            blank,
            prepared: false,
            member_id: None,
            unknown: UnknownFields::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Marker;
    use super::*;
    use serde_json::Value;

    /// A record of a newer release, with an unknown field in every object.
    const RECORD: &str = r#"{"format":1,"later":[1],"members":{"a":{"volume":"vol-1","blank":true,"memberId":"8e9e","later":{}}},
        "replacing":{"member":"a","added":true,"later":2},
        "retired":{"9":{"givenUp":true,"members":{"b":[{"volume":"vol-3","blank":false,"later":3}]},"later":7},
            "cdf8":{"members":{"e":[{"volume":"vol-4","blank":false,"prepared":true,"memberId":"2","later":6}]}}},
        "leaving":{"d":{"begun":true,"later":4},"e":{"later":5}},
        "generation":{"clusterId":"cdf8","token":"t","later":"x"}}"#;
    const MARKER: &str = r#"{"format":1,"cluster":"x","etcd":"main","member":"a","volume":"vol-1","token":"t","later":{"deep":1}}"#;

    fn parse_value(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    fn with_format(text: &str, format: u32) -> String {
        text.replace("\"format\":1", &format!("\"format\":{format}"))
    }

    #[test]
    fn what_a_newer_release_wrote_is_there_after_this_one_has_written() {
        let record = FormationRecord::parse("r", RECORD.as_bytes()).unwrap();
        assert_eq!(parse_value(&record.to_json()), parse_value(RECORD));
        let snapshot = r#"{"store":"s3://x","name":"n","sha256":"0a","bytes":4,"revision":7,"keys":2,"bump":1000000000,"later":1}"#;
        let whole = |generation: &str, next: &str| {
            format!(r#"{{"format":1,"members":{{}},"generation":{generation}{next}}}"#)
        };
        let next = |source: &str| {
            format!(
                r#","next":{{"from":"a","token":"t2","source":{source},"ready":true,"stopped":{{"b":{{"term":2,"index":9}},"c":null}},"later":1}}"#
            )
        };
        let formed = r#"{"clusterId":"9","token":"t"}"#;
        for text in [
            whole(r#"{"token":"t","later":1}"#, ""),
            whole(
                &format!(
                    r#"{{"clusterId":"9","token":"t","restored":{snapshot},"refused":{{"token":"t1","source":"s","why":"it is damaged","later":1}}}}"#
                ),
                "",
            ),
            whole(
                formed,
                &next(r#"{"member":{"force":true,"revision":7,"later":1}}"#),
            ),
            whole(formed, &next(r#"{"member":{}}"#)),
            whole(formed, &next(&format!(r#"{{"snapshot":{snapshot}}}"#))),
        ] {
            let record = FormationRecord::parse("r", text.as_bytes()).unwrap();
            assert_eq!(parse_value(&record.to_json()), parse_value(&text));
        }
        let marker = Marker::parse("m", MARKER.as_bytes()).unwrap();
        assert_eq!(parse_value(&marker.to_json()), parse_value(MARKER));
    }

    #[test]
    fn this_format_and_the_one_before_are_read_and_no_other_and_none_is_renumbered() {
        for format in 0..=FORMAT + 2 {
            let near = format == FORMAT || format + 1 == FORMAT;
            let text = with_format(RECORD, format);
            match FormationRecord::parse("etcd/main.json", text.as_bytes()) {
                Ok(record) => {
                    assert!(near, "{format}");
                    assert_eq!(parse_value(&record.to_json()), parse_value(&text));
                }
                Err(error) => {
                    assert!(!near, "{error}");
                    assert!(matches!(error, Error::Format { found, .. } if found == format));
                }
            }
            let marker = with_format(MARKER, format);
            assert_eq!(
                Marker::parse("m", marker.as_bytes()).is_ok(),
                near,
                "{format}"
            );
        }
    }
}
