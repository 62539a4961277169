//! The copies of an etcd cluster's data, from which it can be recovered.

use super::etcd_members::render_rows;
use etcd_rules::{FormationRecord, ReportedMember};
use indicatif::BinaryBytes;
use node::duration::duration_text;
use serde::Serialize;

/// A member of the record, and what is reported about its data.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CopyRow {
    /// Short name: `a`.
    pub member: String,
    pub volume: String,
    /// The instance that reports the volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// `leader`, `follower`, `learner`, `no leader`, `stopped`; `not reported` if no instance reports the volume.
    pub role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub term: Option<u64>,
    /// Newest revision that was ever reported of the data. Members apply the same writes in the same order, so a higher one has all
    /// that a lower one had applied. What a member has in its log and has not applied does not show: protokube compares the logs once
    /// the members have stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<i64>,
    /// True if etcd runs there under another id than the one in the record.
    #[serde(skip)]
    pub is_foreign: bool,
    /// True if the instance has reported lately.
    #[serde(skip)]
    fresh: bool,
    /// Version of etcd, if it runs.
    #[serde(skip)]
    pub version: Option<String>,
}

impl CopyRow {
    /// True if protokube on the instance can restore the data.
    pub fn is_usable(&self) -> bool {
        self.fresh && self.role != "learner"
    }

    /// True if etcd runs there, and votes as soon as it reaches the others.
    pub fn may_vote(&self) -> bool {
        self.fresh && ["leader", "follower", "no leader"].contains(&self.role)
    }
}

/// The members of a record with their reports.
pub fn list_copies(
    members: &[ReportedMember],
    record: &FormationRecord,
    etcd: &str,
) -> Vec<CopyRow> {
    let copies = record.members.iter().map(|(member, recorded)| {
        let of_volume = |one: &&ReportedMember| {
            one.status.etcd == etcd && one.status.volume.as_ref() == Some(&recorded.volume)
        };
        let age = |one: &ReportedMember| one.stored_seconds.or(one.age_seconds);
        // An instance that is gone has left its report.
        let own = members.iter().filter(of_volume);
        let own = own.min_by_key(|one| age(one).unwrap_or(i64::MAX));
        let revisions = members.iter().filter(of_volume);
        let revisions = revisions.filter_map(|one| Some(one.status.running.as_ref()?.revision));
        let running = own.and_then(|one| one.status.running.as_ref());
        CopyRow {
            member: member.clone(),
            volume: recorded.volume.clone(),
            instance: own.map(|one| one.status.instance.clone()),
            role: own.map_or("not reported", |one| one.role),
            term: running.map(|one| one.term),
            revision: revisions.max(),
            database_bytes: running.map(|one| one.database_bytes),
            age_seconds: own.and_then(age),
            is_foreign: running.is_some_and(|one| recorded.member_id.as_ref() != Some(&one.id)),
            fresh: own.is_some_and(ReportedMember::is_stored_lately),
            version: running.map(|one| one.version.clone()),
        }
    });
    copies.collect()
}

/// The copy with the newest data that was ever reported, whether or not it can be used now.
pub fn newest_copy(copies: &[CopyRow]) -> Option<&CopyRow> {
    let known = copies.iter().filter(|copy| copy.revision.is_some());
    known.max_by_key(|copy| (copy.revision, copy.is_usable()))
}

/// The newest of the copies that an instance can restore now.
pub fn newest_usable_copy(copies: &[CopyRow]) -> Option<&CopyRow> {
    let usable = copies.iter().filter(|copy| copy.is_usable());
    usable
        .filter(|copy| copy.revision.is_some())
        .max_by_key(|copy| copy.revision)
}

/// The copies as a table.
pub fn copies_table(copies: &[CopyRow]) -> String {
    let headers = [
        "MEMBER", "INSTANCE", "VOLUME", "ROLE", "TERM", "REVISION", "DATABASE", "AGE",
    ];
    let number = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    let cells = copies.iter().map(|copy| {
        let bytes = copy
            .database_bytes
            .map(|bytes| BinaryBytes(bytes).to_string());
        vec![
            copy.member.clone(),
            copy.instance.clone().unwrap_or_default(),
            copy.volume.clone(),
            copy.role.to_owned(),
            number(copy.term),
            number(copy.revision),
            bytes.unwrap_or_default(),
            copy.age_seconds.map(duration_text).unwrap_or_default(),
        ]
    });
    render_rows(&headers, &cells.collect::<Vec<_>>())
}

/// What a recovery does, for a preview.
pub fn describe_recovery(copies: &[CopyRow], from: &str, etcd: &str, name: &str) -> String {
    let others = copies.iter().filter(|copy| copy.member != from);
    let others: Vec<String> = others
        .map(|copy| match &copy.instance {
            Some(instance) => format!("{} on {instance} with {}", copy.member, copy.volume),
            None => format!("{} with {}", copy.member, copy.volume),
        })
        .collect();
    let others = if others.is_empty() {
        "there are no others".to_owned()
    } else {
        others.join("; ")
    };
    format!(
        "{}\nA recovery of etcd {etcd} from member {from}:\n\
         - stops all other members for ever: {others}. It waits until each has stopped, or its volume is deleted; with --force, or attached \
         to nothing. Terminate an instance that does not answer\n\
         - compares the ends of the logs once the members have stopped, and stops there if another one has more, unless --force\n\
         - restores the data of member {from} as a new etcd cluster. Writes that only the lost members acknowledged are lost\n\
         - lets every client list anew: revisions begin far above all that were used\n\
         - keeps all old data on its volumes, in data.lost-N\n\
         - lets the other members join as new ones\n\
         Nothing was changed. To begin: kctl etcd recover {name} --etcd {etcd} --from {from} --yes\n",
        copies_table(copies)
    )
}
