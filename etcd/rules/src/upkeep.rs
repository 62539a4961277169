//! The upkeep of an etcd cluster: when a member is defragmented, and how a cluster that has reached its quota accepts writes again.
//! Each instance decides for its own member, and the leader's instance for the cluster. One member at a time, the leader last.

use super::member_status::{ListedMember, RunningMember};
use std::time::Duration;

/// The alarm of a database that has reached its quota.
pub const NO_SPACE: &str = "NOSPACE";

/// The alarm of members whose data differ.
pub const CORRUPT: &str = "CORRUPT";

/// A defragmentation below this does not pay, bytes.
const LEAST_UNUSED: u64 = 100 << 20;

/// Space that a defragmentation needs on the volume beyond the data, which it copies, bytes.
const SPARE_BYTES: u64 = 64 << 20;

/// Above this part of its quota, a database is defragmented if that helps. Below it, an alarm `NOSPACE` is disarmed. Percent.
const FULL: u64 = 80;

/// Percent of the quota below which the data of a database near its quota must be, so that a defragmentation leads away from it.
const ROOM: u64 = 60;

/// The same while the alarm `NOSPACE` is active and only deletions are written. etcd writes the copy in full pages, so it is not larger than
/// the data before (etcd: `defragdb`, `FillPercent`), but what clients delete afterwards makes it grow by some percent of the quota.
const ROOM_WITHOUT_WRITES: u64 = 75;

/// A member is not defragmented again within this time: its database may grow to the same size between two compactions.
const INTERVAL: Duration = Duration::from_hours(1);

/// The same while the alarm `NOSPACE` is active, unless the database has become half empty since: then it does not grow again.
const INTERVAL_WITHOUT_WRITES: Duration = Duration::from_mins(5);

/// A follower that is further behind the leader than this is still receiving its data, revisions.
const MOST_BEHIND: u64 = 1000;

/// What an instance knows before it does something for its member or its etcd cluster.
#[derive(Clone, Copy, Debug)]
pub struct UpkeepView<'a> {
    /// The local member, as it says.
    pub own: &'a RunningMember,
    /// Free space on its volume, bytes; `None` if it is not known.
    pub free_bytes: Option<u64>,
    /// Time since this instance last defragmented the member, or tried to.
    pub since_defragmented: Option<Duration>,
    /// Newest revision that the instance may compact: it has seen it some time ago and has not compacted it yet.
    pub compactable: Option<u64>,
    /// What every other member in the local list of members says about itself.
    pub others: &'a [OtherMember],
    /// What changes the cluster at the moment, for example a replacement.
    pub change: Option<&'a str>,
}

/// Another member of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherMember {
    /// As the local member lists it.
    pub listed: ListedMember,
    /// What it says about itself, or why it does not answer.
    pub says: Result<RunningMember, String>,
}

/// What an instance does next for the upkeep of its etcd cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpkeepStep {
    /// Nothing: it is the turn of another instance, or all is well.
    Rest,
    /// Something is due, and cannot be done. The text says why, and what an operator can do.
    Wait(String),
    /// Compact the keys up to this revision.
    Compact(u64),
    /// Defragment the local member.
    Defragment,
    /// Make this member the leader, because the local one, which leads, is to be defragmented.
    MoveLeader(ListedMember),
    /// Disarm the alarm `NOSPACE`.
    Disarm,
}

impl UpkeepStep {
    /// True if only one instance at a time may take the step.
    pub const fn is_exclusive(&self) -> bool {
        matches!(self, Self::Defragment | Self::MoveLeader(_))
    }
}

/// True if the member alone has a reason to look at the others: it is to be defragmented, or has the alarm `NOSPACE`.
pub fn needs_upkeep(own: &RunningMember, since_defragmented: Option<Duration>) -> bool {
    let due = is_wasteful(own) && is_due(own, since_defragmented);
    !own.learner && !has_alarm(own, CORRUPT) && (has_alarm(own, NO_SPACE) || due)
}

/// The next step. While the members' data differ nothing is changed: it would destroy what an operator needs to compare.
pub fn decide_upkeep(view: &UpkeepView<'_>) -> UpkeepStep {
    let UpkeepView { own, others, .. } = view;
    let answers: Vec<&RunningMember> = others
        .iter()
        .filter_map(|other| other.says.as_ref().ok())
        .collect();
    let corrupt = answers.iter().any(|other| has_alarm(other, CORRUPT));
    if corrupt || !needs_upkeep(own, view.since_defragmented) {
        return UpkeepStep::Rest;
    }
    let (leads, no_space) = (is_leader(own), has_alarm(own, NO_SPACE));
    // kube-apiserver compacts by a transaction that writes a key (k8s.io/apiserver: `etcd3.Compact`), which etcd refuses now
    // (etcd: `applierV3Capped.Txn`). It accepts deletions and compactions.
    if let Some(revision) = view.compactable.filter(|_| leads && no_space) {
        return UpkeepStep::Compact(revision);
    }
    // It takes no member out of service. One that does not answer, and is at its quota, raises the alarm again when it comes back.
    let mut known = std::iter::once(*own).chain(answers.iter().copied());
    if leads && no_space && known.all(|one| is_below(one, FULL)) {
        return UpkeepStep::Disarm;
    }
    let due = is_wasteful(own) && is_due(own, view.since_defragmented);
    if !due && !leads {
        return UpkeepStep::Rest;
    }
    if let Some(why) = find_unwell(view) {
        let why = format!("nothing is defragmented while {why}");
        return wait_if_urgent(own, why);
    }
    let wasteful = |other: &&&RunningMember| is_wasteful(other) && !is_leader(other);
    let wasteful: Vec<&&RunningMember> = answers.iter().filter(wasteful).collect();
    if !due {
        return describe_need(own, &answers, wasteful.is_empty());
    }
    let is_turn = if leads {
        wasteful.is_empty()
    } else {
        wasteful.iter().all(|other| own.name < other.name)
    };
    if !is_turn {
        return UpkeepStep::Rest;
    }
    decide_defragmentation(view)
}

/// The step of an instance whose member is the next one to be defragmented.
fn decide_defragmentation(view: &UpkeepView<'_>) -> UpkeepStep {
    let own = view.own;
    // etcd writes a copy beside the database (etcd: `backend.defrag`).
    let needed = own.database_used_bytes + SPARE_BYTES;
    if let Some(free) = view.free_bytes.filter(|free| *free < needed) {
        let why = format!(
            "a defragmentation needs {} free on the volume of {}, which has {}: set a larger volumeSize for the member and run kctl \
             update --yes",
            size_text(needed),
            own.name,
            size_text(free)
        );
        return wait_if_urgent(own, why);
    }
    // With several members, another one leads meanwhile, so that writes do not wait.
    let followers = view.others.iter().filter(|_| is_leader(own));
    let newest = followers.max_by_key(|other| other.says.as_ref().map_or(0, |says| says.revision));
    newest.map_or(UpkeepStep::Defragment, |other| {
        UpkeepStep::MoveLeader(other.listed.clone())
    })
}

/// What keeps a defragmentation waiting is worth telling only if the quota is near.
fn wait_if_urgent(own: &RunningMember, why: String) -> UpkeepStep {
    match has_alarm(own, NO_SPACE) || !is_below(own, FULL) {
        true => UpkeepStep::Wait(why),
        false => UpkeepStep::Rest,
    }
}

/// What an alarm `NOSPACE` waits for, by the leader's instance.
fn describe_need(
    own: &RunningMember,
    others: &[&RunningMember],
    no_follower_wasteful: bool,
) -> UpkeepStep {
    let all = std::iter::once(own).chain(others.iter().copied());
    // Somebody else is next, or the local member was defragmented just now.
    if !no_follower_wasteful || is_wasteful(own) {
        return UpkeepStep::Rest;
    }
    UpkeepStep::Wait(format!(
        "its data need the space ({}): delete objects that nobody needs, or set a larger ETCD_QUOTA_BACKEND_BYTES in \
         spec.etcdClusters[].manager.env, and run kctl update --yes and kctl rolling-update --yes",
        describe_sizes(all)
    ))
}

/// Sizes of the databases: `etcd-a 2 GiB of 2 GiB, 300 MiB in use`.
fn describe_sizes<'a>(members: impl Iterator<Item = &'a RunningMember>) -> String {
    let sizes = members.map(|one| {
        let quota = one.quota_bytes.map(size_text);
        let quota = quota.map(|quota| format!(" of {quota}"));
        format!(
            "{} {}{}, {} in use",
            one.name,
            size_text(one.database_bytes),
            quota.unwrap_or_default(),
            size_text(one.database_used_bytes)
        )
    });
    sizes.collect::<Vec<String>>().join("; ")
}

/// MiB, the unit in which quotas are set.
fn size_text(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

/// Why the cluster is not well enough to do without a member for a while.
fn find_unwell(view: &UpkeepView<'_>) -> Option<String> {
    let own = view.own;
    if let Some(change) = view.change {
        return Some(change.to_owned());
    }
    if own.name.is_empty() || own.leader.is_none() {
        return Some("the local member knows no leader".to_owned());
    }
    view.others.iter().find_map(|OtherMember { listed, says }| {
        let name = if listed.name.is_empty() {
            &listed.id
        } else {
            &listed.name
        };
        match says {
            Err(why) => Some(format!("{name} does not answer: {why}")),
            Ok(other) if listed.learner || other.learner => {
                Some(format!("{name} does not vote yet"))
            }
            Ok(other) if other.leader != own.leader || other.cluster_id != own.cluster_id => {
                Some(format!("{name} follows another leader"))
            }
            Ok(other) if other.revision.abs_diff(own.revision) > MOST_BEHIND => {
                Some(format!("{name} and {} are far apart", own.name))
            }
            Ok(_) => None,
        }
    })
}

/// True if a defragmentation makes the database much smaller, or leads away from its quota.
fn is_wasteful(member: &RunningMember) -> bool {
    let (size, used) = (member.database_bytes, member.database_used_bytes);
    let unused = size.saturating_sub(used);
    if unused > LEAST_UNUSED && unused > size / 2 {
        return true;
    }
    let room = match has_alarm(member, NO_SPACE) {
        true => ROOM_WITHOUT_WRITES,
        false => ROOM,
    };
    let part = |percent| member.quota_bytes.map(|quota| quota / 100 * percent);
    !is_below(member, FULL) && part(room).is_some_and(|room| used < room)
}

fn is_due(own: &RunningMember, since_defragmented: Option<Duration>) -> bool {
    let is_half_empty = own.database_used_bytes < own.database_bytes / 2;
    let interval = match has_alarm(own, NO_SPACE) {
        true if is_half_empty => Duration::ZERO,
        true => INTERVAL_WITHOUT_WRITES,
        false => INTERVAL,
    };
    since_defragmented.is_none_or(|since| since >= interval)
}

/// True if the database is smaller than this percentage of its quota. etcd compares the size of the file (etcd:
/// `BackendQuota.Available`).
fn is_below(member: &RunningMember, percent: u64) -> bool {
    let limit = member.quota_bytes.map(|quota| quota / 100 * percent);
    limit.is_none_or(|limit| member.database_bytes < limit)
}

fn has_alarm(member: &RunningMember, alarm: &str) -> bool {
    member.alarms.iter().any(|one| one == alarm)
}

fn is_leader(member: &RunningMember) -> bool {
    member.leader.as_ref() == Some(&member.id)
}

#[cfg(test)]
#[path = "upkeep_test.rs"]
mod tests;
