//! The members of etcd clusters as etcd lists them, with the instances and volumes that report them.

use super::table;
use etcd_rules::{ReportedMember, RunningMember};
use node::duration::duration_text;
use serde::Serialize;
use std::collections::BTreeSet;

/// A member in etcd's list.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedRow {
    etcd: String,
    /// Empty until the member has started.
    name: String,
    id: String,
    /// False for a learner.
    voter: bool,
    started: bool,
    /// The instance that reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    volume: Option<String>,
}

/// The name of a member in etcd, or what is known instead: a learner does not say it, and one that is stopped neither.
pub fn member_name(member: &ReportedMember) -> &str {
    let status = &member.status;
    let name = status.running.as_ref().map(|one| one.name.as_str());
    name.filter(|name| !name.is_empty())
        .or(status.member.as_deref())
        .unwrap_or(&status.instance)
}

/// What the member says that knows an etcd cluster best: of the newest term the leader, or the newest revision. A learner does not
/// list members.
fn best_informed<'a>(members: &'a [ReportedMember], etcd: &str) -> Option<&'a RunningMember> {
    let own = members.iter().filter(|one| one.status.etcd == etcd);
    let running = own.filter_map(|one| one.status.running.as_ref());
    let lists = running.filter(|one| !one.members.is_empty());
    lists.max_by_key(|one| (one.term, one.leader.as_ref() == Some(&one.id), one.revision))
}

/// The etcd clusters of which instances report members.
fn etcd_names(members: &[ReportedMember]) -> BTreeSet<&str> {
    members.iter().map(|one| one.status.etcd.as_str()).collect()
}

/// The members of all etcd clusters.
pub fn list_members(members: &[ReportedMember]) -> Vec<ListedRow> {
    let mut rows = Vec::new();
    for etcd in etcd_names(members) {
        let listed = best_informed(members, etcd).map(|one| one.members.as_slice());
        for listed in listed.unwrap_or_default() {
            let own = members.iter().find(|one| {
                let running = one.status.running.as_ref();
                one.status.etcd == etcd && running.is_some_and(|one| one.id == listed.id)
            });
            rows.push(ListedRow {
                etcd: etcd.to_owned(),
                name: listed.name.clone(),
                id: listed.id.clone(),
                voter: !listed.learner,
                started: !listed.name.is_empty(),
                instance: own.map(|one| one.status.instance.clone()),
                volume: own.and_then(|one| one.status.volume.clone()),
            });
        }
    }
    rows
}

/// Why the list may be wrong: etcd clusters of which no member runs, or of which all reports are old.
pub fn listing_gaps(members: &[ReportedMember]) -> Vec<String> {
    let gap = |etcd: &str| {
        let own = members.iter().filter(|one| one.status.etcd == etcd);
        let running = own.filter(|one| one.status.running.is_some());
        let youngest = running.min_by_key(|one| one.age_seconds.unwrap_or(i64::MAX));
        let Some(youngest) = youngest else {
            return Some(format!(
                "{etcd}: no member runs; `kctl etcd status` shows why"
            ));
        };
        let age = youngest.age_seconds.map_or_else(
            || "an unknown time".to_owned(),
            |age| format!("{} ago", duration_text(age)),
        );
        (!youngest.is_fresh()).then(|| {
            format!("{etcd}: the newest report was written {age}; `kctl get instances` shows the control planes")
        })
    };
    etcd_names(members).into_iter().filter_map(gap).collect()
}

/// The members as a table.
pub fn members_list(rows: &[ListedRow]) -> String {
    let headers = [
        "ETCD", "MEMBER", "ID", "VOTES", "STARTED", "INSTANCE", "VOLUME",
    ];
    let word = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let cells = rows.iter().map(|row| {
        vec![
            row.etcd.clone(),
            row.name.clone(),
            row.id.clone(),
            if row.voter { "yes" } else { "learner" }.to_owned(),
            word(row.started),
            row.instance.clone().unwrap_or_default(),
            row.volume.clone().unwrap_or_default(),
        ]
    });
    render_rows(&headers, &cells.collect::<Vec<_>>())
}

/// A table, or nothing if it has no rows.
pub fn render_rows(headers: &[&str], rows: &[Vec<String>]) -> String {
    match rows {
        [] => String::new(),
        rows => table::render(headers, rows),
    }
}
