//! Role upkeep: keeps the database of the local member of an etcd cluster small, and ends the alarm `NOSPACE`, without the Kubernetes
//! API. It reports alarms. `etcd_rules::decide_upkeep` decides; this module observes and carries out.

use super::status::free_bytes;
use super::{EtcdMaintenance, MemberSettings, manifest};
use anyhow::anyhow;
use etcd_rules::{
    CORRUPT, FormationRecord, NO_SPACE, RunningMember, UpkeepStep, UpkeepView, decide_upkeep,
    needs_upkeep,
};
use etcd_store::{FormationStore, UpkeepClaims};
use host::Host;
use protokube_role::lock::lock_ignoring_poison;
use protokube_role::log::RoleLog;
use protokube_role::pace::Sleep;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// Time between two looks at the local member.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);

/// The same while an alarm is active, or something was done.
const QUICK_INTERVAL: Duration = Duration::from_secs(5);

/// What fails for so long is reported. Without an alarm nothing depends on it, and it is tried again.
const PATIENCE: Duration = Duration::from_mins(30);

/// Time between two compactions while the alarm `NOSPACE` is active. Expiring leases delete keys all the time.
const COMPACTION_INTERVAL: Duration = Duration::from_secs(15);

/// Inputs of the role.
#[derive(Debug)]
pub struct UpkeepRole<E> {
    pub volume: MemberVolume,
    /// The local member.
    pub member: E,
    pub formation: FormationStore,
    pub claims: UpkeepClaims,
    pub role_log: RoleLog,
    pub sleep: Sleep,
    /// What must not be lost if the role is restarted.
    pub memory: UpkeepMemory,
}

/// The volume of the local member.
#[derive(Debug)]
pub struct MemberVolume {
    pub settings: MemberSettings,
    pub host: Host,
}

/// What this process has seen and done.
#[derive(Debug, Default)]
pub struct UpkeepMemory(Mutex<Memory>);

#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    /// When the member was last defragmented, or the attempt failed.
    defragmented: Option<Instant>,
    /// Revision at the last look.
    seen: Option<u64>,
    /// Revision up to which the keys were compacted, and when.
    compacted: Option<(u64, Instant)>,
}

impl<E: EtcdMaintenance> UpkeepRole<E> {
    /// Keeps the member up for ever.
    pub async fn keep_up(&self) -> anyhow::Result<()> {
        const ABOUT: &str = "upkeep";
        let mut released = false;
        loop {
            // A claim that stays ends by itself, and a state store that fails is reported by other roles.
            released = released || self.claims.release_left().await.is_ok();
            let interval = match self.take_step().await {
                Ok(interval) => {
                    self.role_log.report_resolved(ABOUT);
                    interval
                }
                Err(error) => {
                    self.role_log.report_attempt(ABOUT, &error, PATIENCE);
                    LOOK_INTERVAL
                }
            };
            (self.sleep)(interval).await;
        }
    }

    /// Observes, and takes at most one step. Returns the time to the next one.
    async fn take_step(&self) -> anyhow::Result<Duration> {
        // Why etcd does not answer is reported by other roles.
        let Ok(own) = self.member.describe_member().await else {
            return Ok(LOOK_INTERVAL);
        };
        let memory = self.remember(&own);
        if !needs_upkeep(&own, since(memory.defragmented)) {
            self.report_alarms(&own, None);
            return Ok(LOOK_INTERVAL);
        }
        let mut step = self.decide(&own, memory, None).await;
        if step.is_exclusive() {
            step = self.take_exclusive_step(memory).await?;
        }
        match &step {
            UpkeepStep::Wait(why) => self.report_alarms(&own, Some(why)),
            // What is said about the alarm stays: this step comes between others.
            UpkeepStep::Compact(_) => {}
            _ => self.report_alarms(&own, None),
        }
        match step {
            UpkeepStep::Compact(revision) => self.compact(revision).await?,
            UpkeepStep::Disarm => {
                self.member.disarm(NO_SPACE).await?;
                self.role_log.report_change("disarmed the alarm NOSPACE");
            }
            UpkeepStep::Wait(why) if own.alarms.is_empty() => return Err(anyhow!(why)),
            UpkeepStep::Rest if own.alarms.is_empty() => return Ok(LOOK_INTERVAL),
            _ => {}
        }
        Ok(QUICK_INTERVAL)
    }

    /// Takes the claim, looks again and takes the step, if it is still one to take. What others do without the claim is visible now.
    async fn take_exclusive_step(&self, memory: Memory) -> anyhow::Result<UpkeepStep> {
        let Some(claim) = self.claims.take().await? else {
            return Ok(UpkeepStep::Rest);
        };
        let taken = self.take_claimed_step(memory).await;
        if let Err(error) = self.claims.release(claim).await {
            self.role_log.report_change(&format!("{error:#}"));
        }
        taken
    }

    async fn take_claimed_step(&self, memory: Memory) -> anyhow::Result<UpkeepStep> {
        let read = self.formation.read_record().await?;
        let change = find_change(read.record.as_ref());
        let own = self.member.describe_member().await?;
        let step = self.decide(&own, memory, change.as_deref()).await;
        match &step {
            UpkeepStep::Defragment => self.defragment(&own).await?,
            UpkeepStep::MoveLeader(to) => {
                self.member.move_leader(&to.id).await?;
                let what = format!(
                    "moved the leadership to {} to defragment {}",
                    to.name, own.name
                );
                self.role_log.report_change(&what);
            }
            _ => {}
        }
        Ok(step)
    }

    async fn decide(
        &self,
        own: &RunningMember,
        memory: Memory,
        change: Option<&str>,
    ) -> UpkeepStep {
        let MemberVolume { settings, host } = &self.volume;
        let volume = manifest::runs_from(host, settings).await.ok().flatten();
        let compactable = memory.seen.filter(|seen| {
            let before = memory.compacted;
            before.is_none_or(|(revision, at)| {
                *seen > revision && at.elapsed() >= COMPACTION_INTERVAL
            })
        });
        decide_upkeep(&UpkeepView {
            own,
            free_bytes: free_bytes(host, volume.as_deref()).await,
            since_defragmented: since(memory.defragmented),
            compactable,
            others: &self.member.describe_others(own).await,
            change,
        })
    }

    async fn defragment(&self, before: &RunningMember) -> anyhow::Result<()> {
        // A failed attempt counts too: the next one fails in the same way.
        lock_ignoring_poison(&self.memory.0).defragmented = Some(Instant::now());
        self.role_log
            .report_change(&format!("defragments {}", before.name));
        self.member.defragment().await?;
        lock_ignoring_poison(&self.memory.0).defragmented = Some(Instant::now());
        let after = self.member.describe_member().await?;
        self.role_log.report_change(&format!(
            "the database of {} had {} bytes and has {}",
            after.name, before.database_bytes, after.database_bytes
        ));
        Ok(())
    }

    async fn compact(&self, revision: u64) -> anyhow::Result<()> {
        self.member.compact(revision).await?;
        lock_ignoring_poison(&self.memory.0).compacted = Some((revision, Instant::now()));
        self.role_log
            .report_change(&format!("compacted the keys up to revision {revision}"));
        Ok(())
    }

    /// Remembers the revision of this look. Returns what was known before it.
    fn remember(&self, own: &RunningMember) -> Memory {
        let mut memory = lock_ignoring_poison(&self.memory.0);
        let before = *memory;
        memory.seen = Some(own.revision);
        before
    }

    fn report_alarms(&self, own: &RunningMember, waits: Option<&str>) {
        const ABOUT: &str = "alarm";
        if own.alarms.is_empty() {
            return self.role_log.report_resolved(ABOUT);
        }
        let alarms = own
            .alarms
            .iter()
            .map(|alarm| describe_alarm(own, alarm, waits));
        let alarms: Vec<String> = alarms.collect();
        self.role_log
            .report_error(ABOUT, &anyhow!(alarms.join("; ")));
    }
}

fn since(when: Option<Instant>) -> Option<Duration> {
    when.map(|when| when.elapsed())
}

/// What changes the etcd cluster according to its record.
fn find_change(record: Option<&FormationRecord>) -> Option<String> {
    let Some(record) = record else {
        return Some("the state store has no formation record".to_owned());
    };
    match &record.replacing {
        Some(replacing) => Some(format!(
            "member {} is being replaced or added",
            replacing.member
        )),
        None if record.is_formed() => None,
        None => Some("the etcd cluster is being formed or recovered".to_owned()),
    }
}

/// Explains an alarm and what ends it (<https://etcd.io/docs/v3.6/op-guide/maintenance/#space-quota>,
/// <https://etcd.io/docs/v3.6/op-guide/data_corruption/>).
fn describe_alarm(own: &RunningMember, alarm: &str, waits: Option<&str>) -> String {
    let members = own.members_with_alarm(alarm).join(", ");
    let raised = if members.is_empty() {
        alarm.to_owned()
    } else {
        format!("{alarm}, raised for {members}")
    };
    match alarm {
        NO_SPACE => {
            let next = match waits {
                Some(why) => format!("protokube cannot end it yet: {why}"),
                None => "protokube compacts and defragments, and disarms it".to_owned(),
            };
            format!(
                "etcd's database has reached its quota ({raised}): it answers reads and refuses writes; {next}"
            )
        }
        CORRUPT => format!(
            "the data of etcd's members differ ({raised}): it refuses writes; replace that member before anything else: \
             docs/operations/etcd.md#a-corrupt-member"
        ),
        _ => format!("etcd raised the alarm {raised}"),
    }
}
