//! The members of etcd clusters as a table, and what is wrong with them.

use super::table;
use indicatif::BinaryBytes;
use node::duration::duration_text;
use node::etcd::{FormationRecord, MemberStatus, RunningMember};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// protokube writes once a minute: one that was silent for longer than this, in seconds, does not run or cannot write.
const SILENT: i64 = 180;

/// The status of a member, and what follows from it.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownMember {
    /// `leader`, `follower`, `learner`, `no leader`; `stopped` if etcd does not answer.
    pub role: &'static str,
    /// Age of the status; `None` if its time cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<i64>,
    #[serde(flatten)]
    pub status: MemberStatus,
}

impl ShownMember {
    /// True if protokube on the instance has reported lately.
    pub fn is_fresh(&self) -> bool {
        self.age_seconds.is_some_and(|age| age <= SILENT)
    }
}

/// Adds role and age, and sorts by etcd cluster and member.
pub fn describe_members(all: Vec<MemberStatus>, now: OffsetDateTime) -> Vec<ShownMember> {
    let describe = |status: MemberStatus| {
        let written = OffsetDateTime::parse(&status.written, &Rfc3339).ok();
        ShownMember {
            role: status.running.as_ref().map_or("stopped", role_word),
            // An instance's clock may be ahead.
            age_seconds: written.map(|written| (now - written).whole_seconds().max(0)),
            status,
        }
    };
    let mut shown: Vec<ShownMember> = all.into_iter().map(describe).collect();
    shown.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
    shown
}

fn sort_key(member: &ShownMember) -> (&str, &str, &str) {
    // `main` before `events` is not worth an exception: the order is that of names.
    let running = member.status.running.as_ref();
    let name = running.map_or("", |one| one.name.as_str());
    (&member.status.etcd, name, &member.status.instance)
}

fn role_word(member: &RunningMember) -> &'static str {
    match &member.leader {
        _ if member.learner => "learner",
        None => "no leader",
        Some(leader) if *leader == member.id => "leader",
        Some(_) => "follower",
    }
}

/// What is wrong, a sentence each: silent members, waits and refusals, alarms, members of a record that nobody reports, and members
/// of an etcd cluster that are of different clusters.
pub fn find_problems(
    members: &[ShownMember],
    records: &BTreeMap<String, FormationRecord>,
) -> Vec<String> {
    let mut problems: Vec<String> = members.iter().flat_map(member_problems).collect();
    for (etcd, record) in records {
        let own = members.iter().filter(|one| one.status.etcd == *etcd);
        let volumes: BTreeSet<&String> = own
            .clone()
            .filter_map(|one| one.status.volume.as_ref())
            .collect();
        for (member, recorded) in &record.members {
            if !volumes.contains(&recorded.volume) {
                problems.push(format!(
                    "{etcd}: no instance reports member {member} with volume {}",
                    recorded.volume
                ));
            }
        }
        let running = own.filter_map(|one| one.status.running.as_ref());
        let clusters: BTreeSet<&str> = running.map(|one| one.cluster_id.as_str()).collect();
        if clusters.len() > 1 {
            let ids: Vec<&str> = clusters.into_iter().collect();
            problems.push(format!(
                "{etcd}: its members are of different etcd clusters: {}",
                ids.join(", ")
            ));
        }
    }
    problems
}

fn member_problems(member: &ShownMember) -> Vec<String> {
    let status = &member.status;
    let of = format!("{} on {}", status.etcd, status.instance);
    let silent = member.age_seconds.filter(|age| *age > SILENT);
    let silent = silent.map(|age| {
        let since = duration_text(age);
        format!("{of}: protokube has reported nothing for {since}; what is shown is that old")
    });
    let problem = status.problem.as_ref().map(|text| format!("{of}: {text}"));
    let alarms = status.running.iter().flat_map(|running| &running.alarms);
    let alarms = alarms.map(|alarm| format!("{of}: alarm {alarm}: etcd accepts no writes"));
    silent.into_iter().chain(problem).chain(alarms).collect()
}

/// The members as a table, and the problems below.
pub fn members_table(members: &[ShownMember], problems: &[String]) -> String {
    let headers = [
        "ETCD", "MEMBER", "INSTANCE", "ROLE", "ID", "TERM", "REVISION", "VERSION", "DATABASE",
        "FSYNC", "VOLUME", "FREE", "AGE",
    ];
    let rows: Vec<Vec<String>> = members.iter().map(member_row).collect();
    let mut text = match rows.as_slice() {
        [] => String::new(),
        rows => table::render(&headers, rows),
    };
    if !problems.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str("Problems:\n");
    }
    for problem in problems {
        text.push_str(&format!("  {problem}\n"));
    }
    text
}

fn member_row(member: &ShownMember) -> Vec<String> {
    let status = &member.status;
    let running = status.running.as_ref();
    let of = |value: &dyn Fn(&RunningMember) -> String| running.map(value).unwrap_or_default();
    let bytes = |count: u64| BinaryBytes(count).to_string();
    vec![
        status.etcd.clone(),
        of(&|one| one.name.clone()),
        status.instance.clone(),
        member.role.to_owned(),
        of(&|one| one.id.clone()),
        of(&|one| one.term.to_string()),
        of(&|one| one.revision.to_string()),
        of(&|one| one.version.clone()),
        of(&|one| match one.quota_bytes {
            Some(quota) => format!("{} of {}", bytes(one.database_bytes), bytes(quota)),
            None => bytes(one.database_bytes),
        }),
        of(&|one| {
            let milliseconds = one.fsync_p99_seconds.map(|seconds| seconds * 1000.0);
            milliseconds.map_or_else(String::new, |time| format!("{time} ms"))
        }),
        status.volume.clone().unwrap_or_default(),
        status.free_bytes.map(bytes).unwrap_or_default(),
        member.age_seconds.map(duration_text).unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::etcd::{FormationState, RecordedMember};

    const WRITTEN: &str = "2026-11-24T10:00:00Z";

    fn status(instance: &str, id: &str, leader: Option<&str>) -> MemberStatus {
        MemberStatus {
            etcd: "main".to_owned(),
            instance: instance.to_owned(),
            written: WRITTEN.to_owned(),
            volume: Some(format!("vol-{id}")),
            free_bytes: Some(18 << 30),
            running: Some(RunningMember {
                name: format!("etcd-{id}"),
                id: id.to_owned(),
                cluster_id: "c".to_owned(),
                leader: leader.map(str::to_owned),
                term: 4,
                revision: 2700,
                version: "3.6.5".to_owned(),
                database_bytes: 20 << 20,
                quota_bytes: Some(8 << 30),
                fsync_p99_seconds: Some(0.008),
                ..RunningMember::default()
            }),
            ..MemberStatus::default()
        }
    }

    fn record(members: &[&str]) -> BTreeMap<String, FormationRecord> {
        let members = members.iter().map(|id| {
            let volume = format!("vol-{id}");
            let recorded = RecordedMember {
                volume,
                blank: true,
                member_id: None,
                unknown: serde_json::Map::new(),
            };
            ((*id).to_owned(), recorded)
        });
        let record = FormationRecord {
            format: 1,
            state: FormationState::Formed {
                cluster_id: "c".to_owned(),
                token: "t".to_owned(),
                unknown: serde_json::Map::new(),
            },
            members: members.collect(),
            replacing: None,
            unknown: serde_json::Map::new(),
        };
        [("main".to_owned(), record)].into()
    }

    fn at(seconds: i64) -> OffsetDateTime {
        OffsetDateTime::parse(WRITTEN, &Rfc3339).unwrap() + time::Duration::seconds(seconds)
    }

    #[test]
    fn a_healthy_cluster_has_one_leader_and_no_problem() {
        let all = vec![status("i-2", "b", Some("a")), status("i-1", "a", Some("a"))];
        let members = describe_members(all, at(20));
        let problems = find_problems(&members, &record(&["a", "b"]));
        insta::assert_snapshot!(members_table(&members, &problems));
    }

    #[test]
    fn what_is_wrong_stands_below_the_table() {
        let mut full = status("i-1", "a", None);
        full.running.as_mut().unwrap().alarms = vec!["NOSPACE".to_owned()];
        let mut other = status("i-2", "b", Some("b"));
        other.running.as_mut().unwrap().cluster_id = "d".to_owned();
        let refusing = MemberStatus {
            etcd: "events".to_owned(),
            instance: "i-3".to_owned(),
            problem: Some("vol-9 holds an XFS file system".to_owned()),
            ..MemberStatus::default()
        };
        let members = describe_members(vec![full, other, refusing], at(700));
        let problems = find_problems(&members, &record(&["a", "b", "c"]));
        insta::assert_snapshot!(members_table(&members, &problems));
    }
}
