//! What is wrong with the etcd clusters, by what their members report in the state store and by the records of the clusters. `kctl etcd
//! status` and `kctl validate` show it. A rolling update does not read it, but the records: a silent instance must not stop its own replacement.

use crate::{
    FormationRecord, MemberStatus, NextGeneration, RecordedMember, Replacing, RunningMember, Source,
};
use node::duration::duration_text;
use node::etcd_problem::EtcdProblem;
use node::next_step::next_step;
use node::report::PROTOKUBE;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// protokube writes once a minute: one that was silent for longer than this, in seconds, does not run or cannot write.
const SILENT: i64 = 180;

/// Seconds within which 99 % of all writes to the log should be on the disk. With more, heartbeats are late and leaders change.
const SLOW_FSYNC: f64 = 0.1;

/// The status of a member, and what follows from it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedMember {
    /// `leader`, `follower`, `learner`, `no leader`; `stopped` if etcd does not answer.
    pub role: &'static str,
    /// Age of the status; `None` if its time cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<i64>,
    /// Age by the state store's own clock; `None` if it was not asked. The instance's may be wrong.
    #[serde(skip)]
    pub stored_seconds: Option<i64>,
    #[serde(flatten)]
    pub status: MemberStatus,
}

impl ReportedMember {
    /// True if protokube on the instance has reported lately.
    pub fn is_fresh(&self) -> bool {
        self.age_seconds.is_some_and(|age| age <= SILENT)
    }

    /// True if it is an old report of a member that was removed: its instance is gone, and no other takes its place.
    pub fn is_left_behind(&self, record: &FormationRecord) -> bool {
        let own = self.status.member.as_ref();
        let volume = self.status.volume.as_ref();
        let removed = record.retired.values();
        let removed = removed.filter(|of| !of.given_up);
        let removed = removed.flat_map(|of| &of.members);
        let removed =
            removed.flat_map(|(member, all)| all.iter().map(move |one| (member, &one.volume)));
        let is_of = |(member, of): (&String, &String)| {
            volume.map_or(own == Some(member), |volume| volume == of)
        };
        let stays = record
            .members
            .iter()
            .any(|(member, one)| is_of((member, &one.volume)));
        let has_left = own.is_some_and(|own| record.has_left(own));
        !self.is_fresh() && !stays && (has_left || { removed }.any(is_of))
    }

    /// True if it was written lately by the state store's clock, if that is known.
    pub fn is_stored_lately(&self) -> bool {
        let age = self.stored_seconds.or(self.age_seconds);
        age.is_some_and(|age| age <= SILENT)
    }

    /// True if its member votes and knows a leader, as it said last.
    pub fn votes(&self) -> bool {
        ["leader", "follower"].contains(&self.role)
    }

    fn has_volume(&self, recorded: &RecordedMember) -> bool {
        self.status.volume.as_ref() == Some(&recorded.volume)
    }
}

/// Adds role and age, and sorts by etcd cluster and member.
pub fn describe_members(all: Vec<MemberStatus>, now: OffsetDateTime) -> Vec<ReportedMember> {
    let describe = |status: MemberStatus| {
        let written = OffsetDateTime::parse(&status.written, &Rfc3339).ok();
        ReportedMember {
            role: status.running.as_ref().map_or("stopped", role_word),
            // An instance's clock may be ahead.
            age_seconds: written.map(|written| (now - written).whole_seconds().max(0)),
            stored_seconds: None,
            status,
        }
    };
    let mut described: Vec<ReportedMember> = all.into_iter().map(describe).collect();
    described.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
    described
}

fn sort_key(member: &ReportedMember) -> (&str, &str, &str) {
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

/// All problems of the etcd clusters, by etcd cluster. An etcd cluster that was not formed and that nobody reports has none: its
/// control planes have not come up yet.
pub fn find_etcd_problems(
    members: &[ReportedMember],
    records: &BTreeMap<String, FormationRecord>,
) -> Vec<EtcdProblem> {
    let reported = members.iter().map(|one| &one.status.etcd);
    let names: BTreeSet<&String> = reported.chain(records.keys()).collect();
    let problems = names.into_iter().flat_map(|etcd| {
        let own: Vec<&ReportedMember> = members
            .iter()
            .filter(|one| one.status.etcd == *etcd)
            .collect();
        cluster_problems(etcd, &own, records.get(etcd))
    });
    problems.collect()
}

/// The problems of an etcd cluster of which `reported` are all reports.
fn cluster_problems(
    etcd: &str,
    reported: &[&ReportedMember],
    record: Option<&FormationRecord>,
) -> Vec<EtcdProblem> {
    let record = record.filter(|record| record.is_formed() || !reported.is_empty());
    let current = reported.iter().copied();
    let current: Vec<&ReportedMember> = current
        .filter(|one| !is_superseded(one, reported, record))
        .collect();
    let mut problems: Vec<EtcdProblem> = current
        .iter()
        .flat_map(|member| member_problems(member))
        .collect();
    problems.extend(alarm_problems(etcd, &current));
    problems.extend(different_clusters(etcd, &current));
    if let Some(record) = record {
        if record.next.is_none() {
            problems.extend(record.replacing.iter().map(|one| change_of(etcd, one)));
        }
        problems.extend(removals(etcd, record));
        match &record.next {
            Some(next) => problems.push(recovery_of(etcd, next)),
            None if record.is_forming() => problems.extend(unseen_members(etcd, record)),
            None => problems.extend(unreported_members(etcd, &current, record)),
        }
    }
    problems
}

/// True if the report is old and all members that it may be about are reported by other instances: the instance is gone and has left
/// it. protokube deletes the reports of predecessors, but cannot know one that had no volume yet.
fn is_superseded(
    member: &ReportedMember,
    reported: &[&ReportedMember],
    record: Option<&FormationRecord>,
) -> bool {
    let Some(record) = record.filter(|_| !member.is_fresh()) else {
        return false;
    };
    let of = &member.status;
    let mut candidates = record.members.iter().filter(|(name, recorded)| {
        let volume = of.volume.as_ref();
        let own = of.member.as_ref();
        volume.is_none_or(|volume| *volume == recorded.volume) && own.is_none_or(|own| own == *name)
    });
    candidates.all(|(_, recorded)| {
        let mut fresh = reported.iter().filter(|one| one.is_fresh());
        fresh.any(|one| one.has_volume(recorded))
    })
}

fn member_problems(member: &ReportedMember) -> Vec<EtcdProblem> {
    let status = &member.status;
    let problem = |message: String, next: String, is_told| EtcdProblem {
        etcd: status.etcd.clone(),
        instance: Some(status.instance.clone()),
        message,
        next,
        is_told,
    };
    let mut problems = Vec::new();
    let silent = match member.age_seconds {
        Some(age) if age > SILENT => Some(format!(
            "protokube has reported nothing for {}: what is known of the member is that old",
            duration_text(age)
        )),
        Some(_) => None,
        None => Some("the time of its report cannot be read".to_owned()),
    };
    problems.extend(silent.map(|message| {
        let next = "see whether the instance runs: kctl get instances; on the instance, protokube's log says why it cannot write: \
                    journalctl -u protokube";
        problem(message, next.to_owned(), false)
    }));
    problems.extend(status.problem.as_ref().map(|told| {
        let stage = format!("{PROTOKUBE}/etcd-{}", status.etcd);
        let next = next_step(&stage, told);
        problem(told.clone(), next.unwrap_or_default(), true)
    }));
    let running = status.running.as_ref();
    // What a silent member knew of a leader is not so any more.
    if member.is_fresh() && running.is_some_and(|one| one.leader.is_none()) {
        let next = "more than half of the members must run and reach each other: kctl etcd status shows them, kctl get instances the \
                    control planes; if they are lost for good: docs/operations/etcd.md#recover-from-one-member";
        let message = "it knows no leader, and accepts no writes";
        problems.push(problem(message.to_owned(), next.to_owned(), false));
    }
    problems
}

/// An alarm is one of the whole etcd cluster. What was said long ago counts only if nobody says anything newer.
fn alarm_problems(etcd: &str, current: &[&ReportedMember]) -> Vec<EtcdProblem> {
    let any_fresh = current.iter().any(|one| one.is_fresh());
    let newest = current.iter().filter(|one| one.is_fresh() || !any_fresh);
    let running: Vec<&RunningMember> = newest
        .filter_map(|one| one.status.running.as_ref())
        .collect();
    let alarms: BTreeSet<&str> = running
        .iter()
        .flat_map(|one| one.alarms.iter().map(String::as_str))
        .collect();
    let alarms = alarms.into_iter().map(|alarm| {
        let next = match alarm {
            "NOSPACE" => {
                "delete objects that nobody needs, or raise the quota; protokube does the rest: docs/operations/full-disk.md"
            }
            "CORRUPT" => {
                "replace the member whose data differ before anything else: docs/operations/etcd.md#a-corrupt-member"
            }
            _ => "see what it means in the documentation of etcd",
        };
        let raised: BTreeSet<&str> = running
            .iter()
            .flat_map(|one| one.members_with_alarm(alarm))
            .collect();
        let raised: Vec<&str> = raised.into_iter().collect();
        let raised = match raised.as_slice() {
            [] => String::new(),
            raised => format!(", raised for {}", raised.join(", ")),
        };
        EtcdProblem::of_cluster(
            etcd,
            format!("alarm {alarm}{raised}: etcd accepts no writes"),
            next.to_owned(),
        )
    });
    alarms.collect()
}

fn different_clusters(etcd: &str, current: &[&ReportedMember]) -> Option<EtcdProblem> {
    let running = current.iter().filter_map(|one| one.status.running.as_ref());
    let ids: BTreeSet<&str> = running.map(|one| one.cluster_id.as_str()).collect();
    (ids.len() > 1).then(|| {
        let ids: Vec<&str> = ids.into_iter().collect();
        EtcdProblem::of_cluster(
            etcd,
            format!("its members are of different etcd clusters: {}", ids.join(", ")),
            format!("delete nothing: etcd/{etcd}.json in the cluster's folder of the state store has the id of the right one; see whether the volumes of the others have the right tags"),
        )
    })
}

/// The replacement or addition of a member, which goes on by itself.
fn change_of(etcd: &str, replacing: &Replacing) -> EtcdProblem {
    let member = &replacing.member;
    let message = match replacing.added {
        false => format!("member {member} has lost its data and is being replaced by a new one"),
        true => format!("member {member} is being added"),
    };
    let next =
        "wait, and stop no other control plane meanwhile: kctl etcd status shows how far it is";
    EtcdProblem::of_cluster(etcd, message, next.to_owned())
}

/// A recovery, which operators asked for. Its lost members are not reported any more.
fn recovery_of(etcd: &str, next: &NextGeneration) -> EtcdProblem {
    let from = &next.from;
    let stopped: Vec<&str> = next.stopped.keys().map(String::as_str).collect();
    let stopped = match stopped.as_slice() {
        [] => "no other member has stopped yet".to_owned(),
        stopped => format!("stopped: {}", stopped.join(", ")),
    };
    let (message, command) = match &next.source {
        Source::Member(_) => (
            format!("it is being recovered from member {from}; {stopped}"),
            format!("recover --etcd {etcd} --from {from}"),
        ),
        Source::Snapshot(snapshot) => (
            format!(
                "the snapshot {} is being restored on member {from}; {stopped}",
                snapshot.name
            ),
            format!("restore --etcd {etcd} --snapshot {}", snapshot.name),
        ),
    };
    let next = format!("kctl etcd {command} --yes shows what it waits for");
    EtcdProblem::of_cluster(etcd, message, next)
}

/// Members that the spec has no longer, and that are still in etcd.
fn removals(etcd: &str, record: &FormationRecord) -> Vec<EtcdProblem> {
    let pending = record.pending_removals().map(|(member, leaving)| {
        let how = match leaving.begun {
            true => "is being removed",
            false => "waits to be removed",
        };
        EtcdProblem::of_cluster(
            etcd,
            format!("member {member} {how}, because the spec has it no longer"),
            "wait: it is removed once all other members are well. kctl update --yes waits for it, and then deletes its group"
                .to_owned(),
        )
    });
    pending.collect()
}

/// Members without whose volumes no cluster is founded.
fn unseen_members(etcd: &str, record: &FormationRecord) -> Vec<EtcdProblem> {
    let anew = record.began_anew();
    let unseen = record.unseen_members().map(|(member, recorded)| {
        let volume = &recorded.volume;
        let message = if anew {
            format!("it is being founded anew, and waits until member {member} has set its old data on {volume} aside")
        } else {
            format!("it is being founded, and waits for member {member}: no instance has taken its volume {volume}")
        };
        let next = format!(
            "see how far its control plane is: kctl get instances. If its machine does not come, go on without it: kctl etcd forget CLUSTER \
             {member} --etcd {etcd}"
        );
        EtcdProblem::of_cluster(etcd, message, next)
    });
    unseen.collect()
}

fn unreported_members(
    etcd: &str,
    current: &[&ReportedMember],
    record: &FormationRecord,
) -> Vec<EtcdProblem> {
    let missing = record
        .members
        .iter()
        .filter(|(_, recorded)| !current.iter().any(|one| one.has_volume(recorded)));
    let missing = missing.map(|(member, recorded)| {
        let volume = &recorded.volume;
        EtcdProblem::of_cluster(
            etcd,
            format!("no instance reports member {member} with volume {volume}"),
            "its control plane is gone, or has not come up yet: kctl get instances; if the volume is lost: docs/operations/etcd.md"
                .to_owned(),
        )
    });
    missing.collect()
}

/// Members that work, but wait long for their disk, a sentence each.
pub fn find_slow_disks(members: &[ReportedMember]) -> Vec<String> {
    let slow = members.iter().filter(|one| one.is_fresh());
    let slow = slow.filter_map(|one| {
        let running = one.status.running.as_ref()?;
        let seconds = running.fsync_p99_seconds.filter(|p99| *p99 > SLOW_FSYNC)?;
        let status = &one.status;
        Some(format!(
            "etcd {} on {}: 99 % of the writes to its log take up to {} ms; with more than 100 ms members lose their leader",
            status.etcd,
            status.instance,
            seconds * 1000.0
        ))
    });
    slow.collect()
}

#[cfg(test)]
#[path = "problems_test.rs"]
mod tests;
