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
    /// Progress of the formation.
    pub state: FormationState,
    /// Members by their short name: `a`. The one that is being replaced is on its new volume here.
    pub members: BTreeMap<String, RecordedMember>,
    /// The member that is being replaced or added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacing: Option<Replacing>,
    /// Members of etcd clusters that were given up by a recovery, by etcd's id of the cluster (hex); of one that was never formed, by its
    /// token. Their data is never started again, and is kept on their volumes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub given_up: BTreeMap<String, BTreeMap<String, RecordedMember>>,
    /// Members that the spec has no longer, by name. They are removed one at a time. An entry stays when its member is gone, so that
    /// an instance of an older configuration does not add it again, and until an update of a spec with that member takes it away.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub leaving: BTreeMap<String, Leaving>,
    /// Members that were removed, by name, the last one at the end. Their ids are never started again, and their volumes are kept.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub removed: BTreeMap<String, Vec<RecordedMember>>,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// A member that is to be removed, see [`super::set_leaving`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Leaving {
    /// True once it may have been removed from etcd: from then on nobody can let it stay.
    #[serde(default, skip_serializing_if = "is_false")]
    pub begun: bool,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// Progress of an etcd cluster's formation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum FormationState {
    /// The members are new. They start with this token once every volume was seen blank.
    Forming {
        /// `initial-cluster-token`.
        token: String,
        /// Fields of a newer release.
        #[serde(flatten)]
        unknown: UnknownFields,
    },
    /// The cluster exists and is never founded again.
    Formed {
        /// etcd's id of the cluster, hex.
        cluster_id: String,
        /// The token with which it was formed.
        token: String,
        /// The snapshot with which it began.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        restored: Option<RestoredSnapshot>,
        /// The last restore that was asked for and did not begin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<RefusedRestore>,
        /// Fields of a newer release.
        #[serde(flatten)]
        unknown: UnknownFields,
    },
    /// An operator has asked for a new cluster with the data of one member, because more than half of the members are lost, or with
    /// a snapshot.
    Recovering(Recovering),
}

/// A recovery of a cluster without a quorum, see [`super::begin_recovery`], or a restore of a snapshot, see [`super::begin_restore`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recovering {
    /// Short name of the member whose data is kept: `a`.
    pub from: String,
    /// `initial-cluster-token` of the new cluster.
    pub token: String,
    /// etcd's id of the cluster that is given up, hex.
    pub cluster_id: String,
    /// True once the instance of that member has what it needs to restore the data. The others stop only then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ready: bool,
    /// True if the operator gives up what other members have and that one has not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// Revision of that member when the operator chose it: its data is not older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// Members whose etcd was stopped for the recovery, and is not started again.
    #[serde(default)]
    pub stopped: BTreeSet<String>,
    /// The last entries of their logs, read after they stopped. It is missing for a log that cannot be read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub logs: BTreeMap<String, LastEntry>,
    /// The snapshot that is restored in the place of the member's data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<RestoredSnapshot>,
    /// `initial-cluster-token` of the cluster that is given up. With it a restore that has not stopped anybody can be called off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_before: Option<String>,
    /// The snapshot with which that cluster began, for the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_before: Option<RestoredSnapshot>,
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

/// A restore whose snapshot turned out to be unusable, before any member was stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedRestore {
    /// `initial-cluster-token` of the cluster that it would have begun.
    pub token: String,
    /// Name of the snapshot.
    pub snapshot: String,
    /// What is wrong with it.
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
    #[serde(default, skip_serializing_if = "is_false")]
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
    /// The member whose data was lost; `None` if the member is added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<LostMember>,
    /// Fields of a newer release.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// A member whose data was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LostMember {
    /// Volume id, `vol-...`.
    pub volume: String,
    /// etcd's id of the member, hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_id: Option<String>,
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
    /// A record in which no member is being replaced, and no cluster was given up.
    pub fn new(state: FormationState, members: BTreeMap<String, RecordedMember>) -> Self {
        Self {
            format: FORMAT,
            state,
            members,
            replacing: None,
            given_up: BTreeMap::new(),
            leaving: BTreeMap::new(),
            removed: BTreeMap::new(),
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

    /// The token with which the members start or started.
    pub fn token(&self) -> &str {
        match &self.state {
            FormationState::Forming { token, .. }
            | FormationState::Formed { token, .. }
            | FormationState::Recovering(Recovering { token, .. }) => token,
        }
    }

    /// How many members hold the cluster's data: one that is being added does not yet.
    pub fn data_members(&self) -> usize {
        let added = self.replacing.as_ref().is_some_and(|of| of.lost.is_none());
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

    /// True if the volume is that of a member of this name which was removed. A new member may begin on it, once it may be added at all.
    pub(super) fn was_removed_on(&self, member: &str, volume: &str) -> bool {
        let of_name = self.removed.get(member);
        of_name.is_some_and(|all| all.iter().any(|one| one.volume == volume))
    }

    /// True if the volume was seen blank for a member of this name that has not run since.
    pub(super) fn was_blank(&self, member: &str, volume: &str) -> bool {
        let known = self.given_up.values().chain([&self.members]);
        let known = known.filter_map(|members| members.get(member));
        let removed = self.removed.get(member).into_iter().flatten();
        let mut own = known.chain(removed);
        own.any(|of| of.volume == volume && of.blank && of.member_id.is_none())
    }

    /// True if the cluster exists.
    pub fn is_formed(&self) -> bool {
        matches!(self.state, FormationState::Formed { .. })
    }
}

impl FormationState {
    /// The state of members that will start with this token.
    pub fn forming(token: &str) -> Self {
        Self::Forming {
            token: token.to_owned(),
            unknown: UnknownFields::new(),
        }
    }

    /// The state of a formed cluster with this id and token.
    pub fn formed(cluster_id: &str, token: &str) -> Self {
        Self::Formed {
            cluster_id: cluster_id.to_owned(),
            token: token.to_owned(),
            restored: None,
            refused: None,
            unknown: UnknownFields::new(),
        }
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

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use super::super::Marker;
    use super::*;
    use serde_json::Value;

    /// A record of a newer release, with an unknown field in every object.
    const RECORD: &str = r#"{"format":1,"later":[1],"members":{"a":{"volume":"vol-1","blank":true,"memberId":"8e9e","later":{}}},
        "replacing":{"member":"a","lost":{"volume":"vol-0","memberId":"1"},"later":2},
        "givenUp":{"9":{"b":{"volume":"vol-3","blank":false,"later":3}}},
        "leaving":{"d":{"begun":true,"later":4},"e":{"later":5}},
        "removed":{"e":[{"volume":"vol-4","blank":false,"prepared":true,"memberId":"2","later":6}]},
        "state":{"formed":{"clusterId":"cdf8","token":"t","later":"x"}}}"#;
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
        let forming = r#"{"format":1,"members":{},"state":{"forming":{"token":"t","later":1}}}"#;
        let record = FormationRecord::parse("r", forming.as_bytes()).unwrap();
        assert_eq!(parse_value(&record.to_json()), parse_value(forming));
        let recovering = r#"{"format":1,"members":{},"state":{"recovering":{"from":"a","token":"t","clusterId":"9","stopped":["b"],"later":1}}}"#;
        let record = FormationRecord::parse("r", recovering.as_bytes()).unwrap();
        assert_eq!(parse_value(&record.to_json()), parse_value(recovering));
        let recovering = r#"{"format":1,"members":{},"state":{"recovering":{"from":"a","token":"t","clusterId":"9","ready":true,"force":true,
            "revision":7,"stopped":["b"],"logs":{"b":{"term":2,"index":9}}}}}"#;
        let record = FormationRecord::parse("r", recovering.as_bytes()).unwrap();
        assert_eq!(parse_value(&record.to_json()), parse_value(recovering));
        let snapshot = r#"{"store":"s3://x","name":"n","sha256":"0a","bytes":4,"revision":7,"keys":2,"bump":1000000000,"later":1}"#;
        let restoring = r#"{"from":"a","token":"t","clusterId":"9","force":true,"stopped":[],"tokenBefore":"t0","snapshot":"#;
        let restoring = format!(
            r#"{{"format":1,"members":{{}},"state":{{"recovering":{restoring}{snapshot}}}}}}}"#
        );
        let formed = format!(
            r#"{{"format":1,"members":{{}},"state":{{"formed":{{"clusterId":"9","token":"t","restored":{snapshot}}}}}}}"#
        );
        for text in [restoring, formed] {
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
