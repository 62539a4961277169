//! What protokube reports in the state store about the etcd member on its instance, so that it can be read while the API is away.

use node::components::EtcdMemberNames;
use node::waits::bounded_text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Format of [`MemberStatus`].
pub const MEMBER_STATUS_FORMAT: u32 = 1;

/// Limit of the file, bytes.
pub const MEMBER_STATUS_LIMIT: usize = 64 * 1024;

/// Limit of a name or an id, characters.
const NAME: usize = 120;

/// Limit of a message, characters.
const MESSAGE: usize = 1500;

/// Limit of lists: etcd clusters have at most seven members.
const MOST: usize = 16;

/// The member of an etcd cluster on one instance. Unknown fields are ignored, because the instance may have a newer release.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemberStatus {
    /// [`MEMBER_STATUS_FORMAT`].
    pub format: u32,
    /// The etcd cluster: `main`, `events`.
    pub etcd: String,
    /// Instance id, `i-...`.
    pub instance: String,
    /// Short name of the member, if the instance's group runs only this one: `a`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// Release of protokube.
    pub release: String,
    /// True if protokube's cryptography is AWS-LC's FIPS module.
    pub fips: bool,
    /// Time of writing by the instance's clock, RFC 3339.
    pub written: String,
    /// Volume with the member's data, also while the member is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// Free space on the volume, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// What protokube waits for or refuses, or why etcd does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What etcd says; `None` while it does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<RunningMember>,
}

/// What a running etcd says about itself and its cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunningMember {
    /// Name in etcd's list of members: `etcd-a`.
    pub name: String,
    /// etcd's id of the member, hex.
    pub id: String,
    /// etcd's id of the cluster, hex.
    pub cluster_id: String,
    /// Id of the leader, hex; `None` if the member knows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    /// True if it does not vote.
    pub learner: bool,
    /// Raft term.
    pub term: u64,
    /// Newest revision of the keys that the member has.
    pub revision: u64,
    /// Version of etcd.
    pub version: String,
    /// Size of the database file, bytes.
    pub database_bytes: u64,
    /// The part of it that holds keys: the rest is free after a defragmentation.
    pub database_used_bytes: u64,
    /// Size at which etcd stops to accept writes, bytes; `None` if etcd does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<u64>,
    /// Time within which 99 % of all writes to the log were on the disk since etcd started: the upper bound of etcd's histogram, in
    /// seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fsync_p99_seconds: Option<f64>,
    /// Active alarms: `NOSPACE`, `CORRUPT`.
    pub alarms: Vec<String>,
    /// The same with the member for which each was raised.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub raised_alarms: Vec<RaisedAlarm>,
    /// All members of the cluster.
    pub members: Vec<ListedMember>,
}

/// An alarm and the member for which it was raised. It stops writes on all members.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RaisedAlarm {
    /// `NOSPACE`, `CORRUPT`.
    pub alarm: String,
    /// etcd's id of the member, hex; `None` if etcd cannot tell which one has other data (etcd: `checkPeerHashes`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
}

/// A member in etcd's list of members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListedMember {
    /// etcd's id of the member, hex.
    pub id: String,
    /// Its name; empty until it has started.
    pub name: String,
    /// True if it does not vote.
    pub learner: bool,
}

/// Prefix of the keys of the status of every member of an etcd cluster.
pub fn member_status_prefix(etcd: &str) -> String {
    format!("etcd/{etcd}/")
}

/// Key of a member's status, relative to the cluster's base in the state store.
pub fn member_status_key(etcd: &str, instance: &str) -> String {
    format!("{}{instance}.status.json", member_status_prefix(etcd))
}

/// True if a member of an etcd cluster with this name in etcd is the one that somebody named: `etcd-events-b` or `b`.
pub fn member_name_matches(etcd: &str, name: &str, given: &str) -> bool {
    let names = EtcdMemberNames::new(etcd, [], "");
    name == given || name == names.member_name(given)
}

impl RunningMember {
    /// The names of the members for which an alarm was raised, or their ids if the list of members lacks them.
    pub fn members_with_alarm(&self, alarm: &str) -> Vec<&str> {
        let raised = self.raised_alarms.iter().filter(|one| one.alarm == alarm);
        let ids = raised.filter_map(|one| one.member.as_deref());
        ids.map(|id| {
            let listed = self.members.iter().find(|one| one.id == id);
            let name = listed.map(|one| one.name.as_str());
            name.filter(|name| !name.is_empty()).unwrap_or(id)
        })
        .collect()
    }
}

impl MemberStatus {
    /// True if nothing changed that an operator has to learn of at once: sizes, revisions and times may differ.
    pub fn is_same_condition(&self, other: &Self) -> bool {
        let steady = |one: &Self| Self {
            written: String::new(),
            free_bytes: None,
            running: one.running.clone().map(|running| RunningMember {
                revision: 0,
                database_bytes: 0,
                database_used_bytes: 0,
                fsync_p99_seconds: None,
                ..running
            }),
            ..one.clone()
        };
        steady(self) == steady(other)
    }
}

/// Parses the status of a member that was read from this key, replaces terminal control characters and cuts long texts.
pub fn read_member_status(key: &str, bytes: &[u8]) -> Result<MemberStatus, String> {
    if bytes.len() > MEMBER_STATUS_LIMIT {
        return Err(format!(
            "the status has more than {MEMBER_STATUS_LIMIT} bytes"
        ));
    }
    let mut value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    bound_value(&mut value, NAME);
    let status: MemberStatus = serde_json::from_value(value).map_err(|error| error.to_string())?;
    if member_status_key(&status.etcd, &status.instance) != key {
        return Err("the status belongs to another member".to_owned());
    }
    Ok(status)
}

/// Cuts the texts, of `most` characters, and the lists of a report.
fn bound_value(value: &mut Value, most: usize) {
    match value {
        Value::String(text) => *text = bounded_text(text, most),
        Value::Array(all) => {
            all.truncate(MOST);
            all.iter_mut().for_each(|one| bound_value(one, most));
        }
        Value::Object(fields) => fields.iter_mut().for_each(|(key, one)| {
            bound_value(one, if key == "problem" { MESSAGE } else { NAME });
        }),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(revision: u64, leader: &str) -> MemberStatus {
        MemberStatus {
            etcd: "main".to_owned(),
            running: Some(RunningMember {
                revision,
                leader: Some(leader.to_owned()),
                ..RunningMember::default()
            }),
            ..MemberStatus::default()
        }
    }

    #[test]
    fn a_new_leader_is_a_change_and_a_new_revision_is_not() {
        assert!(running(1, "a").is_same_condition(&running(2, "a")));
        assert!(!running(1, "a").is_same_condition(&running(1, "b")));
    }

    #[test]
    fn what_an_instance_wrote_cannot_move_the_cursor_and_fields_may_be_missing() {
        let key = "etcd/main/i-1.status.json";
        let text =
            br#"{"etcd":"main","instance":"i-1","problem":"\u001b[2Jgone","running":{"name":"a\u0007"},"more":1}"#;
        let status = read_member_status(key, text).unwrap();
        assert_eq!(status.problem.as_deref(), Some(" [2Jgone"));
        assert_eq!(status.running.unwrap().name, "a ");
        assert!(read_member_status("etcd/main/i-2.status.json", text).is_err());
        assert!(read_member_status(key, b"[]").is_err());
        assert!(read_member_status(key, &vec![b' '; MEMBER_STATUS_LIMIT + 1]).is_err());
    }

    /// A report that is too long wherever it can be. A new field has to be named here.
    fn endless_report() -> MemberStatus {
        let text = |most: usize| format!("\u{1b}{}", "x".repeat(most));
        let name = || text(NAME);
        let raised = RaisedAlarm {
            alarm: name(),
            member: Some(name()),
        };
        let listed = ListedMember {
            id: name(),
            name: name(),
            learner: true,
        };
        let running = RunningMember {
            name: name(),
            id: name(),
            cluster_id: name(),
            leader: Some(name()),
            learner: true,
            term: u64::MAX,
            revision: u64::MAX,
            version: name(),
            database_bytes: u64::MAX,
            database_used_bytes: u64::MAX,
            quota_bytes: Some(u64::MAX),
            fsync_p99_seconds: Some(0.001),
            alarms: vec![name(); MOST + 1],
            raised_alarms: vec![raised; MOST + 1],
            members: vec![listed; MOST + 1],
        };
        MemberStatus {
            format: MEMBER_STATUS_FORMAT,
            etcd: "main".to_owned(),
            instance: "i-1".to_owned(),
            member: Some(name()),
            release: name(),
            fips: true,
            written: name(),
            volume: Some(name()),
            free_bytes: Some(u64::MAX),
            problem: Some(text(MESSAGE)),
            running: Some(running),
        }
    }

    fn check_bounds(field: &str, value: &Value) {
        match value {
            Value::String(text) => {
                let most = if field == "problem" { MESSAGE } else { NAME };
                assert!(text.chars().count() <= most, "{field} is too long");
                assert!(!text.contains('\u{1b}'), "{field} moves the cursor");
            }
            Value::Array(all) => {
                assert_eq!(all.len(), MOST, "{field}");
                all.iter().for_each(|one| check_bounds(field, one));
            }
            Value::Object(fields) => fields.iter().for_each(|(key, one)| check_bounds(key, one)),
            _ => {}
        }
    }

    #[test]
    fn every_text_and_every_list_of_a_report_is_bounded_and_the_rest_is_as_it_was_written() {
        let written = endless_report();
        let bytes = serde_json::to_vec(&written).unwrap();
        let read = read_member_status("etcd/main/i-1.status.json", &bytes).unwrap();
        check_bounds("", &serde_json::to_value(&read).unwrap());
        assert_eq!((read.fips, read.free_bytes), (true, written.free_bytes));
        assert_eq!(read.problem.as_deref().map(str::len), Some(MESSAGE));
        let (read, written) = (read.running.unwrap(), written.running.unwrap());
        assert_eq!(read.quota_bytes, written.quota_bytes);
        assert_eq!(read.fsync_p99_seconds, written.fsync_p99_seconds);
    }
}
