//! Decides how members that the spec has no longer are removed from etcd, one at a time. An update asks for it in the record; any
//! other instance whose member is well does it. Nothing is removed that the rest needs for its quorum, and no data is deleted.
//!
//! The order makes every crash harmless: the record says that the removal has begun, then etcd removes the member, then the record
//! loses it. Who finds the record of the middle looks into etcd's list, and goes on from there.

use super::content::{EtcdLog, FileSystemContent, VolumeContent};
use super::live::{LiveCluster, LiveMember, MemberChange};
use super::member_status::RunningMember;
use super::own_member::{Formed, OwnMember};
use super::record::{FormationRecord, Leaving};
use super::replace::{is_of_member, voting_members};
use super::retired::is_given_up;
use super::step::FormationStep;
use super::version_gate::keeps_membership;
use std::collections::BTreeSet;

/// The record with which exactly the members in `wanted` stay: the others leave, and one that comes back may be added. `None` if the
/// record says so already. A removal that has begun goes on; its member may come back afterwards.
///
/// # Errors
/// Why no member can be removed now.
pub fn set_leaving(
    record: &FormationRecord,
    wanted: &BTreeSet<String>,
) -> Result<Option<FormationRecord>, String> {
    let mut next = record.clone();
    next.leaving.retain(|member, leaving| {
        !wanted.contains(member) || leaving.begun && record.members.contains_key(member)
    });
    let unwanted = record.members.keys().filter(|one| !wanted.contains(*one));
    for member in unwanted {
        next.leaving.entry(member.clone()).or_default();
    }
    if next == *record {
        return Ok(None);
    }
    let asks = next.leaving.keys().any(|one| !record.has_left(one));
    if asks && !record.is_formed() {
        let why = match &record.next {
            Some(_) => "it is being recovered",
            None => "it is being formed",
        };
        return Err(why.to_owned());
    }
    if next
        .members
        .keys()
        .all(|one| next.leaving.contains_key(one))
    {
        return Err("no member with its data would remain".to_owned());
    }
    Ok(Some(next))
}

/// What the instance of a member does that leaves: it runs on until etcd has removed it. `None`: like every other member.
pub(super) fn decide_leaving(own: &OwnMember<'_>, record: &FormationRecord) -> FormationStep {
    let recorded = record.members.get(own.member);
    let volume = recorded.map_or(own.volume, |member| &member.volume);
    FormationStep::Wait(format!(
        "{own} leaves, because the spec has it no longer: it is not replaced. {volume} is kept"
    ))
}

/// What the instance does that holds the volume of a removed member.
pub(super) fn decide_removed(
    own: &OwnMember<'_>,
    record: &FormationRecord,
    content: &VolumeContent,
) -> FormationStep {
    if let VolumeContent::FileSystem(FileSystemContent::Marked {
        log: EtcdLog::Of(log),
        ..
    }) = content
        && !is_given_up(own, record, content)
        && !record
            .retired_members(own.member)
            .any(|one| one.member_id.as_ref() == Some(&log.member_id))
    {
        // An older version of the record was restored, and the member has come back since. The others may need its vote.
        return FormationStep::Ask(format!(
            "the record says that member {} was removed from etcd {}, but not that its id was {}, as that of the data on {}: what runs is \
             left running. `kctl update cluster` says whether the spec has the member",
            own.member, own.etcd, log.member_id, own.volume
        ));
    }
    FormationStep::Withdraw(format!(
        "member {} was removed from etcd {}, because the spec has it no longer: it is not started. Its data on {} is kept, and this \
         instance is not needed any more",
        own.member, own.etcd, own.volume
    ))
}

/// The next step of the removal of others, on an instance whose member runs. Also one that leaves itself can remove a dead one, since
/// those that stay may need that first. `None` if there is nothing to do, or nothing
/// can be done without a quorum.
pub(super) fn decide_removal(own: &OwnMember<'_>, formed: &Formed<'_>) -> Option<FormationStep> {
    let record = formed.record;
    let others = || {
        let pending = record.pending_removals();
        pending.filter(|(member, _)| *member != own.member)
    };
    if !own.shown || others().next().is_none() {
        return None;
    }
    // Otherwise the member itself says what is wrong.
    let live = own.live.ok()?;
    if live.cluster_id != formed.cluster_id {
        return None;
    }
    let mut pending: Vec<_> = others().collect();
    pending.sort_by_key(|(_, leaving)| !leaving.begun);
    let mut waits = Vec::new();
    for (member, leaving) in pending {
        let removal = Removal {
            own,
            record,
            live,
            member,
        };
        match removal.next_step(leaving) {
            Ok(step) => return Some(step),
            Err(why) => waits.push(format!(
                "member {member} of etcd {} leaves: {why}",
                own.etcd
            )),
        }
    }
    Some(FormationStep::Continue {
        waits: waits.join("; "),
    })
}

/// The removal of one member.
struct Removal<'a> {
    own: &'a OwnMember<'a>,
    record: &'a FormationRecord,
    live: &'a LiveCluster,
    member: &'a str,
}

impl Removal<'_> {
    /// The next step, or what it waits for.
    fn next_step(&self, leaving: &Leaving) -> Result<FormationStep, String> {
        let listed = self.live.members.iter().filter(|one| self.is_leaving(one));
        let listed: Vec<&LiveMember> = listed.collect();
        let Some(first) = listed.first() else {
            return Ok(FormationStep::Record(record_removed(
                self.record,
                self.member,
            )));
        };
        let stays = self.live.members.iter().filter(|one| !self.is_leaving(one));
        let stays: Vec<&LiveMember> = stays.collect();
        self.check(&listed, &stays)?;
        if !leaving.begun {
            let mut next = self.record.clone();
            next.leaving
                .entry(self.member.to_owned())
                .or_default()
                .begun = true;
            return Ok(FormationStep::Record(next));
        }
        let answers = self.live.members.iter();
        let answers = answers.filter_map(|one| self.find_answer(one));
        let newest = answers.max_by_key(|answer| answer.term);
        let leader = newest.and_then(|answer| answer.leader.as_ref());
        let change = if listed.iter().any(|one| Some(&one.id) == leader) {
            // etcd would elect another one too, but writes wait for an election.
            MemberChange::MoveLeader {
                from: self.member.to_owned(),
                to: self.next_leader(&stays)?,
            }
        } else {
            MemberChange::Remove {
                member: self.member.to_owned(),
                id: first.id.clone(),
            }
        };
        Ok(FormationStep::Change(change))
    }

    fn is_leaving(&self, one: &LiveMember) -> bool {
        let recorded = self.record.members.get(self.member);
        let id = recorded.and_then(|recorded| recorded.member_id.as_ref());
        id == Some(&one.id) || is_of_member(self.own, self.member, one)
    }

    /// What a listed member says about itself.
    fn find_answer(&self, one: &LiveMember) -> Option<&RunningMember> {
        let mut answers = self.own.peers.values().flatten();
        answers.find(|says| says.id == one.id && says.cluster_id == self.live.cluster_id)
    }

    fn answer_of(&self, one: &LiveMember) -> Option<&RunningMember> {
        self.find_answer(one)
            .filter(|answer| answer.leader.is_some())
    }

    /// Checks that the rest keeps its quorum, with a reserve: a member that works is removed only if all others work. One that does not
    /// answer is no part of the quorum (etcd: `mayRemoveMember`), and while it is in the list, etcd adds no member.
    fn check(&self, listed: &[&LiveMember], stays: &[&LiveMember]) -> Result<(), String> {
        if !keeps_membership(self.own.version) {
            return Err(format!(
                "releases of etcd before 3.5.26, as {} here, may bring back a removed member: set spec.etcdClusters[].version to 3.5.26 \
                 or newer first",
                self.own.version
            ));
        }
        if let Some(learner) = stays.iter().find(|one| one.learner) {
            return Err(format!("{} has to vote first", describe_member(learner)));
        }
        let is_up = listed.iter().any(|one| self.answer_of(one).is_some());
        let votes = listed.iter().any(|one| !one.learner);
        let other = self.record.replacing.as_ref();
        let other = other.filter(|of| of.member != self.member);
        if let Some(other) = other.filter(|_| is_up) {
            return Err(format!(
                "member {} is being replaced, and one member changes at a time",
                other.member
            ));
        }
        let voters = voting_members(stays);
        let silent = voters.iter().filter(|one| self.answer_of(one).is_none());
        let silent: Vec<String> = silent.map(|one| describe_member(one)).collect();
        let well = voters.len() - silent.len();
        let remains = |one: &&&LiveMember| {
            let mut members = self.record.members.keys();
            members.any(|member| {
                !self.record.leaving.contains_key(member) && is_of_member(self.own, member, one)
            })
        };
        if is_up && votes && !voters.iter().any(|one| remains(&one)) {
            return Err("no member that stays votes yet".to_owned());
        }
        let is_own = |one: &&&LiveMember| is_of_member(self.own, self.own.member, one);
        let own = voters.iter().find(is_own);
        let own_is_well = own.is_some_and(|one| self.answer_of(one).is_some());
        if !own_is_well || well <= voters.len() / 2 || is_up && votes && !silent.is_empty() {
            return Err(format!(
                "all others have to answer and to know a leader first, and these do not: {}",
                silent.join(", ")
            ));
        }
        Ok(())
    }

    /// The id of the voter that has most of the data.
    fn next_leader(&self, stays: &[&LiveMember]) -> Result<String, String> {
        let voters = voting_members(stays).into_iter();
        let best = voters.max_by_key(|one| self.answer_of(one).map(|answer| answer.revision));
        let best = best.ok_or("no other member votes")?;
        Ok(best.id.clone())
    }
}

fn describe_member(one: &LiveMember) -> String {
    match one.name.as_str() {
        "" => format!("the new member {}", one.id),
        name => format!("{name} ({})", one.id),
    }
}

/// The record without a member that etcd has removed. Its name stays in `leaving`.
fn record_removed(record: &FormationRecord, member: &str) -> FormationRecord {
    let mut next = record.clone();
    if let Some(recorded) = next.members.remove(member) {
        next.retire_member(member, &recorded);
    }
    if let Some(leaving) = next.leaving.get_mut(member) {
        leaving.begun = false;
    }
    next.replacing = next.replacing.filter(|of| of.member != member);
    next
}
