//! Carries out the steps that give a member whose data was lost a new life under a new id. `etcd_rules` decides them.

use super::EtcdQuorum;
use etcd_rules::{FormationRecord, MemberChange, OwnMember};
use etcd_store::{FormationStore, StoredRecord};
use protokube_role::lock::lock_ignoring_poison;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// When EC2 first said something of volumes, for example that they do not exist. One answer may be old.
#[derive(Debug, Default)]
pub(super) struct RepeatedAnswers(Mutex<BTreeMap<String, Instant>>);

impl RepeatedAnswers {
    /// Those of the volumes of which EC2 has said so for `least` without a contradiction.
    pub(super) fn confirm(&self, said_of: &BTreeSet<String>, least: Duration) -> BTreeSet<String> {
        let now = Instant::now();
        let mut first = lock_ignoring_poison(&self.0);
        first.retain(|volume, _| said_of.contains(volume));
        let confirmed = said_of.iter().filter(|volume| {
            let since = first.entry((*volume).clone()).or_insert(now);
            now.duration_since(*since) >= least
        });
        confirmed.cloned().collect()
    }
}

/// Changes the list of members. The id of an added member is recorded before it starts: without it, the next look removes it again.
pub(super) async fn change_members(
    quorum: &impl EtcdQuorum,
    formation: &FormationStore,
    read: &StoredRecord,
    own: &OwnMember<'_>,
    change: &MemberChange,
) -> anyhow::Result<()> {
    let Some(id) = quorum.change_members(own.members, change).await? else {
        return Ok(());
    };
    if let Some(record) = &read.record {
        let next = record_added(record, own.member, id);
        formation.write_record(read, &next).await?;
    }
    Ok(())
}

fn record_added(record: &FormationRecord, member: &str, id: String) -> FormationRecord {
    let mut next = record.clone();
    if let Some(recorded) = next.members.get_mut(member) {
        recorded.member_id = Some(id);
    }
    next
}

/// A change of the list of members, for the log.
pub(super) fn describe_change(own: &OwnMember<'_>, change: &MemberChange) -> String {
    let member = format!("member {} of etcd {}", own.member, own.etcd);
    match change {
        MemberChange::Remove { id, member: of } if of == own.member => {
            format!("removing the lost {member} ({id})")
        }
        MemberChange::Remove { id, member: of } => {
            format!(
                "removing member {of} of etcd {} ({id}), which leaves",
                own.etcd
            )
        }
        MemberChange::MoveLeader { from, to } => format!(
            "moving the leadership of etcd {} from member {from}, which leaves, to {to}",
            own.etcd
        ),
        MemberChange::AddLearner { .. } => {
            format!("adding a new {member}, which does not vote yet")
        }
        MemberChange::EndJoin { id, .. } => format!("the new {member} ({id}) has its own log"),
        MemberChange::Promote { id } => {
            format!("letting the new {member} ({id}) vote once it has the leader's log")
        }
    }
}
