//! Role commands: executes what `kctl etcd` asks of the etcd members on this instance. A command is an object in the state store:
//! it is claimed, executed and answered there, also while the Kubernetes API is away (`etcd_rules::EtcdCommand`).

use super::{DataHash, EtcdMaintenance, ListedRecords};
use crate::backup::{SnapshotSource, SnapshotTaker};
use anyhow::{Context, bail};
use aws_client::store::{Entry, Expect, Store, StoreError, Version};
use etcd_rules::{
    COMMAND_KEPT, COMMAND_LIMIT, COMMANDS_PREFIX, CORRUPT, CommandStep, EtcdCommand, NO_SPACE,
    OtherMember, RunningMember, Verb, record_key,
};
use protokube_role::lock::lock_ignoring_poison;
use protokube_role::log::RoleLog;
use protokube_role::pace::Sleep;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use time::OffsetDateTime;

/// Time between two looks at the state store.
pub const COMMAND_INTERVAL: Duration = Duration::from_secs(10);

/// Prefix of what is listed: commands, and formation records, which kctl changes too.
const LISTED_PREFIX: &str = "etcd/";

/// All commands are read again after this time, to delete old ones.
const REREAD_INTERVAL: time::Duration = time::Duration::HOUR;

/// Inputs of the role.
#[derive(Debug)]
pub struct CommandRole<E> {
    /// State store at the cluster's base.
    pub store: Store,
    /// Id of this instance, `i-...`.
    pub instance: String,
    /// The local members by etcd cluster.
    pub members: BTreeMap<String, E>,
    /// What takes and verifies snapshots of them.
    pub snapshots: BTreeMap<String, Arc<SnapshotTaker<E>>>,
    pub role_log: RoleLog,
    pub clock: fn() -> OffsetDateTime,
    pub sleep: Sleep,
    /// What must not be lost if the role is restarted.
    pub memory: CommandMemory,
    /// What is listed besides: the versions of the formation records.
    pub records: Arc<ListedRecords>,
}

/// Answers that could not be written yet.
#[derive(Debug, Default)]
pub struct CommandMemory(Mutex<BTreeMap<String, (Version, EtcdCommand)>>);

impl<E: SnapshotSource> CommandRole<E> {
    /// Executes commands for ever.
    pub async fn execute_commands(&self) -> anyhow::Result<()> {
        const ABOUT: &str = "commands in the state store";
        // Versions of the commands with which there is nothing to do.
        let mut known: BTreeMap<String, Version> = BTreeMap::new();
        let mut reread_at = (self.clock)() + REREAD_INTERVAL;
        loop {
            let now = (self.clock)();
            if now >= reread_at {
                known.clear();
                reread_at = now + REREAD_INTERVAL;
            }
            match self.handle_commands(&mut known).await {
                Ok(()) => self.role_log.report_resolved(ABOUT),
                Err(error) => self.role_log.report_error(ABOUT, &error),
            }
            (self.sleep)(COMMAND_INTERVAL).await;
        }
    }

    /// Writes pending answers, then handles every command that has changed.
    async fn handle_commands(&self, known: &mut BTreeMap<String, Version>) -> anyhow::Result<()> {
        for key in self.pending_keys() {
            self.write_answer(&key).await?;
        }
        let listed = self.store.list(LISTED_PREFIX, None).await;
        let listed = listed.with_context(|| format!("could not list {LISTED_PREFIX}"))?;
        self.show_records(&listed);
        let entries = listed.into_iter();
        let entries = entries.filter(|entry| entry.key.starts_with(COMMANDS_PREFIX));
        let entries: Vec<Entry> = entries.collect();
        known.retain(|key, _| entries.iter().any(|entry| entry.key == *key));
        let mut failed = None;
        for entry in entries {
            if known.get(&entry.key) == Some(&entry.version) {
                continue;
            }
            match self.handle_command(&entry).await {
                Ok(()) => drop(known.insert(entry.key, entry.version)),
                // One that cannot be handled keeps no other from being executed.
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Tells the members whose record has changed.
    fn show_records(&self, listed: &[Entry]) {
        let versions: BTreeMap<String, Version> = self
            .members
            .keys()
            .filter_map(|etcd| {
                let key = record_key(etcd);
                let entry = listed.iter().find(|entry| entry.key == key)?;
                Some((etcd.clone(), entry.version.clone()))
            })
            .collect();
        self.records.send_if_modified(|shown| {
            let is_changed = *shown != versions;
            *shown = versions;
            is_changed
        });
    }

    async fn handle_command(&self, entry: &Entry) -> anyhow::Result<()> {
        let key = &entry.key;
        if entry.size > COMMAND_LIMIT as u64 {
            self.ignore_object(key, &format!("it has more than {COMMAND_LIMIT} bytes"));
            return Ok(());
        }
        let object = self.store.get(key).await;
        let object = object.with_context(|| format!("could not read {key}"))?;
        let Some(object) = object else {
            return Ok(());
        };
        if object.age.is_some_and(|age| age > COMMAND_KEPT) {
            return self.delete_command(key, object.version).await;
        }
        let command = match EtcdCommand::parse(key, &object.bytes) {
            Ok(command) => command,
            Err(error) => {
                self.ignore_object(key, &format!("{:#}", anyhow::Error::from(error)));
                return Ok(());
            }
        };
        match command.decide_step(&self.instance, object.age, (self.clock)()) {
            CommandStep::Leave => Ok(()),
            CommandStep::Claim(claimed) => self.claim_command(key, object.version, &claimed).await,
            CommandStep::Answer(answer) => {
                self.keep_answer(key, object.version, *answer);
                self.write_answer(key).await
            }
        }
    }

    /// Writes the claim; executes the command only if it was still as read.
    async fn claim_command(
        &self,
        key: &str,
        read: Version,
        claimed: &EtcdCommand,
    ) -> anyhow::Result<()> {
        let text = claimed.to_json().into_bytes();
        let claim = match self.store.put(key, text, Expect::Version(read)).await {
            Ok(claim) => claim,
            // Withdrawn: kctl did not want to wait any longer.
            Err(StoreError::Conflict { .. }) => return Ok(()),
            Err(error) => return Err(error).with_context(|| format!("could not claim {key}")),
        };
        let what = format!(
            "{} of {}, asked by {}",
            claimed.verb.describe(),
            claimed.etcd,
            claimed.asked_by
        );
        self.role_log.report_change(&format!("begins: {what}"));
        let executed = self.execute(claimed).await;
        let now = (self.clock)();
        let (answer, result) = match executed {
            Ok(message) => (claimed.done(&message, now), message),
            Err(error) => {
                let reason = format!("{error:#}");
                (claimed.failed(&reason, now), format!("failed: {reason}"))
            }
        };
        self.role_log.report_change(&format!("{what}: {result}"));
        self.keep_answer(key, claim, answer);
        self.write_answer(key).await
    }

    /// Executes a command. Returns what was done.
    async fn execute(&self, command: &EtcdCommand) -> anyhow::Result<String> {
        let etcd = &command.etcd;
        let Some(member) = self.members.get(etcd) else {
            bail!("this instance runs no member of an etcd cluster {etcd}");
        };
        match &command.verb {
            Verb::Disarm { alarm } => disarm(member, alarm).await,
            Verb::Snapshot { name } => {
                let reason = format!("command, asked by {}", command.asked_by);
                self.snapshots_of(etcd)?.take_asked(name, &reason).await
            }
            Verb::VerifySnapshot { name } => self.snapshots_of(etcd)?.drill(name).await,
            Verb::Unknown(_) => bail!(
                "protokube {} does not know {}: ask with kctl of this release, or replace this instance with the release of the kctl that \
                 asked",
                env!("CARGO_PKG_VERSION"),
                command.verb.describe()
            ),
        }
    }

    fn snapshots_of(&self, etcd: &str) -> anyhow::Result<&SnapshotTaker<E>> {
        let taker = self.snapshots.get(etcd);
        let taker = taker.with_context(|| format!("no snapshots of etcd {etcd} are taken here"))?;
        Ok(taker)
    }

    /// Not an error of this instance: it is logged, and the control plane is well.
    fn ignore_object(&self, key: &str, why: &str) {
        self.role_log
            .report_change(&format!("ignores {key}: {why}"));
    }

    fn pending_keys(&self) -> Vec<String> {
        lock_ignoring_poison(&self.memory.0)
            .keys()
            .cloned()
            .collect()
    }

    fn keep_answer(&self, key: &str, claim: Version, answer: EtcdCommand) {
        lock_ignoring_poison(&self.memory.0).insert(key.to_owned(), (claim, answer));
    }

    /// Writes a pending answer, which stays pending if the state store fails.
    async fn write_answer(&self, key: &str) -> anyhow::Result<()> {
        let Some((claim, answer)) = lock_ignoring_poison(&self.memory.0).get(key).cloned() else {
            return Ok(());
        };
        let text = answer.to_json().into_bytes();
        match self.store.put(key, text, Expect::Version(claim)).await {
            Ok(_) => {}
            Err(StoreError::Conflict { .. }) => self.role_log.report_change(&format!(
                "{key} was changed or deleted before its answer could be written"
            )),
            Err(error) => return Err(error).with_context(|| format!("could not answer {key}")),
        }
        lock_ignoring_poison(&self.memory.0).remove(key);
        Ok(())
    }

    async fn delete_command(&self, key: &str, read: Version) -> anyhow::Result<()> {
        match self.store.delete(key, Expect::Version(read)).await {
            // Another control plane was first.
            Ok(()) | Err(StoreError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("could not delete {key}")),
        }
    }
}

/// Ends the alarm `CORRUPT` if all members have the same data again. protokube never does that unasked: a person decides which data
/// is right. It ends `NOSPACE` unasked.
async fn disarm(member: &impl EtcdMaintenance, alarm: &str) -> anyhow::Result<String> {
    match alarm {
        CORRUPT => {}
        NO_SPACE => bail!(
            "protokube ends the alarm {NO_SPACE} by itself once the data leaves room: docs/operations/full-disk.md"
        ),
        other => bail!("only the alarm {CORRUPT} is ended by a command, and not {other}"),
    }
    let own = member.describe_member().await?;
    if !own.alarms.iter().any(|one| one == CORRUPT) {
        return Ok(format!("no alarm {CORRUPT} is active"));
    }
    let others = member.describe_others(&own).await;
    compare_data(member, &own, &others).await?;
    member.disarm(CORRUPT).await?;
    Ok(format!("disarmed the alarm {CORRUPT}"))
}

/// Checks that all members have the same data, by etcd's hash of all keys at the newest revision that all have.
async fn compare_data(
    member: &impl EtcdMaintenance,
    own: &RunningMember,
    others: &[OtherMember],
) -> anyhow::Result<()> {
    let mut revision = own.revision;
    for OtherMember { listed, says } in others {
        match says {
            Ok(other) => revision = revision.min(other.revision),
            Err(why) => bail!("the data of {} cannot be compared: {why}", listed.name),
        }
    }
    let hashes = member.hash_data(own, revision).await;
    let hashes = hashes.context("the data of the members cannot be compared; ask again")?;
    let Some((first, rest)) = hashes.split_first() else {
        bail!("etcd lists no members");
    };
    let compacted = |one: &DataHash| one.hash.compacted;
    if rest.iter().any(|one| compacted(one) != compacted(first)) {
        bail!("the members are compacting their keys, and cannot be compared meanwhile; ask again");
    }
    if rest.iter().any(|one| one.hash != first.hash) {
        let hash = |one: &DataHash| format!("{} {:08x}", one.member, one.hash.hash);
        let all: Vec<String> = hashes.iter().map(hash).collect();
        bail!(
            "the data of the members differ at revision {revision} (hashes: {}): replace the member that differs from the others, see \
             docs/operations/etcd.md#a-corrupt-member",
            all.join(", ")
        );
    }
    Ok(())
}
