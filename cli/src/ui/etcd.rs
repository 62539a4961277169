//! The members of etcd clusters as a table, with what is wrong with them.

use super::{Paint, Tone, table};
use etcd_rules::{ReportedMember, RunningMember};
use indicatif::BinaryBytes;
use node::duration::duration_text;
use node::etcd_problem::EtcdProblem;
use serde::Serialize;

/// The newest moment to which an etcd cluster can be restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RestorableRow {
    pub etcd: String,
    /// RFC 3339; missing: the backup store does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// How long ago that was, by the backup store's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<u64>,
    pub snapshot: String,
    /// How many parts of the changes after the snapshot there are.
    pub parts: u32,
    /// The instance by whose clock the time is; missing: it is that of the backup store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
}

/// Columns of the table of the newest moments.
pub(super) const RESTORABLE_COLUMNS: [&str; 6] = [
    "ETCD",
    "RESTORABLE UNTIL",
    "AGE",
    "SNAPSHOT",
    "PARTS",
    "CLOCK",
];

/// The newest moments as a table; nothing without any.
pub fn restorable_table(rows: &[RestorableRow]) -> String {
    match rows {
        [] => String::new(),
        rows => {
            let rows: Vec<Vec<String>> = rows.iter().map(restorable_row).collect();
            table::render(&RESTORABLE_COLUMNS, &rows)
        }
    }
}

pub(super) fn restorable_row(one: &RestorableRow) -> Vec<String> {
    let age = one.age_seconds.and_then(|age| i64::try_from(age).ok());
    vec![
        one.etcd.clone(),
        one.until.clone().unwrap_or_default(),
        age.map(duration_text).unwrap_or_default(),
        one.snapshot.clone(),
        one.parts.to_string(),
        one.clock
            .clone()
            .unwrap_or_else(|| "backup store".to_owned()),
    ]
}

/// Columns of the table of members.
pub(super) const MEMBER_COLUMNS: [&str; 13] = [
    "ETCD", "MEMBER", "INSTANCE", "ROLE", "ID", "TERM", "REVISION", "VERSION", "DATABASE", "FSYNC",
    "VOLUME", "FREE", "AGE",
];

/// The members as a table, and the problems below.
pub fn members_table(members: &[ReportedMember], problems: &[EtcdProblem], paint: Paint) -> String {
    let rows: Vec<Vec<String>> = members.iter().map(member_row).collect();
    let mut text = match rows.as_slice() {
        [] => String::new(),
        rows => table::render(&MEMBER_COLUMNS, rows),
    };
    if !problems.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str("Problems:\n");
    }
    for problem in problems {
        let next = paint.with_tone(Tone::Hint, "next:");
        text.push_str(&format!(
            "  {}\n    {next} {}\n",
            problem.one_line(),
            problem.next
        ));
    }
    text
}

pub(super) fn member_row(member: &ReportedMember) -> Vec<String> {
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
    use etcd_rules::{
        FormationRecord, Generation, MemberStatus, RecordedMember, describe_members,
        find_etcd_problems,
    };
    use std::collections::BTreeMap;
    use time::OffsetDateTime;
    use time::format_description::well_known::Rfc3339;

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
            let recorded = RecordedMember::on_volume(&format!("vol-{id}"), true);
            ((*id).to_owned(), recorded)
        });
        let record = FormationRecord::new(Generation::formed("c", "t"), members.collect());
        [("main".to_owned(), record)].into()
    }

    fn at(seconds: i64) -> OffsetDateTime {
        OffsetDateTime::parse(WRITTEN, &Rfc3339).unwrap() + time::Duration::seconds(seconds)
    }

    fn shown(members: Vec<MemberStatus>, recorded: &[&str], age: i64) -> String {
        let members = describe_members(members, at(age));
        let problems = find_etcd_problems(&members, &record(recorded));
        members_table(&members, &problems, Paint::default())
    }

    #[test]
    fn a_healthy_cluster_has_one_leader_and_no_problem() {
        let all = vec![status("i-2", "b", Some("a")), status("i-1", "a", Some("a"))];
        insta::assert_snapshot!(shown(all, &["a", "b"], 20));
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
            written: WRITTEN.to_owned(),
            problem: Some("vol-9 holds an XFS file system".to_owned()),
            ..MemberStatus::default()
        };
        insta::assert_snapshot!(shown(vec![full, other, refusing], &["a", "b", "c"], 700));
    }
}
