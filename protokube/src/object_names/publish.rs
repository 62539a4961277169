//! Role object-names: publishes the names of Services, Ingresses and pods. Of the control planes with a ready API server, the one with the
//! first address does it. Two that both think so for a while do no harm: they write the same, and each change happens as a whole.

use super::changes::{Conflict, NameChange, needed_changes};
use super::observe::{NamedObjects, SeenObjects};
use super::problems::ProblemLog;
use super::settings::ObjectNamesSettings;
use super::wanted::{HeldNames, NameRules, WantedNames, wanted_names};
use crate::names::{ApiServers, Route53};
use anyhow::Context;
use aws_client::record_sets::{
    self, ListedRecord, RecordChange, RecordContent, RecordKey, RecordPage,
};
use engine::Failure;
use node::bootstrap::untrusted_excerpt;
use protokube_role::log::RoleLog;
use protokube_role::pace::Sleep;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::net::IpAddr;
use std::time::Duration;

/// Limits of one batch of changes: 1000 records and 32,000 characters, of which an UPSERT takes each twice (quotas of Route 53).
pub(super) const MAX_RECORDS: usize = 450;
pub(super) const MAX_CHARACTERS: usize = 14_000;

/// Route 53's code for a batch that it refuses because of one of its changes.
const REFUSED: &str = "InvalidChangeBatch";

/// Record sets of a hosted zone, as a trait that tests replace.
pub trait RecordSets: Send + Sync + 'static {
    /// A page of all record sets, from this key on.
    fn list_page(
        &self,
        from: Option<RecordKey>,
    ) -> impl Future<Output = Result<RecordPage, Failure>> + Send;

    /// Makes all of these changes, or none.
    fn change(&self, changes: &[RecordChange]) -> impl Future<Output = Result<(), Failure>> + Send;
}

impl RecordSets for Route53 {
    async fn list_page(&self, from: Option<RecordKey>) -> Result<RecordPage, Failure> {
        record_sets::list_record_sets(&self.clients, &self.zone, from).await
    }

    async fn change(&self, changes: &[RecordChange]) -> Result<(), Failure> {
        record_sets::change_record_sets(&self.clients, &self.zone, changes).await
    }
}

/// Intervals of the role.
#[derive(Clone, Copy, Debug)]
pub struct PublishPace {
    /// Shortest time between two looks at the objects.
    pub look: Duration,
    /// Time before each call of Route 53, which allows five per second and account.
    pub call: Duration,
    /// Time between looks whether this control plane is the one that publishes.
    pub idle: Duration,
    pub sleep: Sleep,
}

/// Inputs of the role.
pub struct ObjectNames<'a, A, R> {
    pub objects: NamedObjects,
    /// List of ready API servers.
    pub servers: &'a A,
    pub records: &'a R,
    pub settings: ObjectNamesSettings,
    /// Address of this instance in the family of the cluster.
    pub address: IpAddr,
    pub role_log: &'a RoleLog,
    pub problems: &'a ProblemLog,
    pub pace: PublishPace,
}

/// What the role did last.
#[derive(Default)]
struct Memory {
    /// Name of the hosted zone.
    zone: String,
    /// What the zone has got.
    wanted: Option<WantedNames>,
    /// What the cluster's records lead to.
    held: HeldNames,
    /// Changes that Route 53 refused, by name, with its reason. They are not tried again while they are the same.
    refused: BTreeMap<String, (NameChange, String)>,
}

impl<A: ApiServers, R: RecordSets> ObjectNames<'_, A, R> {
    /// Keeps the names published until a call fails. The zone is read at the start, and when what the objects want has changed.
    pub async fn keep_published(&self) -> anyhow::Result<()> {
        let mut memory = Memory::default();
        loop {
            if !self.publishes().await? {
                memory = Memory::default();
                (self.pace.sleep)(self.pace.idle).await;
                continue;
            }
            let seen = self.objects.list().await?;
            self.follow_objects(&seen, &mut memory).await?;
            self.objects.wait_for_change(&seen).await?;
            (self.pace.sleep)(self.pace.look).await;
        }
    }

    async fn publishes(&self) -> anyhow::Result<bool> {
        let ready = self.servers.ready_addresses().await?;
        Ok(ready.is_some_and(|ready| ready.first() == Some(&self.address)))
    }

    async fn follow_objects(&self, seen: &SeenObjects, memory: &mut Memory) -> anyhow::Result<()> {
        let claims = seen.claims();
        let current = |memory: &Memory| {
            wanted_names(
                &claims,
                &seen.nodes,
                &self.rules(&memory.zone),
                &memory.held,
            )
        };
        if memory.wanted.is_some() && memory.wanted == Some(current(memory)) {
            return Ok(());
        }
        let present = self.read_zone().await?;
        memory.zone = find_zone_name(&present)?;
        let rules = self.rules(&memory.zone);
        memory.held = find_held_names(&present, &rules);
        let wanted = current(memory);
        let (changes, conflicts) = needed_changes(&wanted, &present, &rules);
        let before = std::mem::take(&mut memory.refused);
        let (same, new): (Vec<_>, Vec<_>) = changes
            .into_iter()
            .partition(|one| before.get(&one.name).is_some_and(|(had, _)| had == one));
        memory.refused = self.write_changes(new).await?;
        let same = same.into_iter().filter_map(|one| {
            let (_, why) = before.get(&one.name)?;
            Some((one.name.clone(), (one, why.clone())))
        });
        memory.refused.extend(same);
        self.problems
            .report(describe_problems(&wanted, &conflicts, &memory.refused));
        memory.held = wanted.held_after(&memory.held);
        memory.wanted = Some(wanted);
        Ok(())
    }

    fn rules(&self, zone: &str) -> NameRules {
        NameRules {
            zone: zone.to_owned(),
            reserved: self.settings.reserved.clone(),
            identifier: self.settings.identifier.clone(),
        }
    }

    async fn read_zone(&self) -> Result<Vec<ListedRecord>, Failure> {
        let (mut all, mut from) = (Vec::new(), None);
        loop {
            (self.pace.sleep)(self.pace.call).await;
            let (page, next) = self.records.list_page(from).await?;
            all.extend(page);
            if next.is_none() {
                return Ok(all);
            }
            from = next;
        }
    }

    /// Writes changes, and returns those that Route 53 refuses, by name. A refused batch is halved until what is wrong stands alone.
    async fn write_changes(
        &self,
        changes: Vec<NameChange>,
    ) -> Result<BTreeMap<String, (NameChange, String)>, Failure> {
        let mut refused = BTreeMap::new();
        let mut batches = split_batches(changes);
        while let Some(mut batch) = batches.pop() {
            (self.pace.sleep)(self.pace.call).await;
            let changes = batch.iter().flat_map(|one| &one.changes);
            let changes: Vec<RecordChange> = changes.cloned().collect();
            match self.records.change(&changes).await {
                Ok(()) => self.role_log.report_change(&describe_changes(&changes)),
                Err(failure) if failure.code != REFUSED => return Err(failure),
                Err(_) if batch.len() > 1 => {
                    let half = batch.split_off(batch.len() / 2);
                    batches.extend([half, batch]);
                }
                Err(failure) => {
                    let all = batch.into_iter();
                    refused
                        .extend(all.map(|one| (one.name.clone(), (one, failure.message.clone()))));
                }
            }
        }
        Ok(refused)
    }
}

/// What the cluster's own records lead to.
fn find_held_names(present: &[ListedRecord], rules: &NameRules) -> HeldNames {
    let mut held = HeldNames::new();
    for record in present {
        if record.key.identifier.as_ref() == Some(&rules.identifier) {
            let values = held.entry(record.key.name.clone()).or_default();
            let own = record.content.iter().flat_map(|content| &content.values);
            values.extend(own.map(|value| value.trim_end_matches('.').to_owned()));
        }
    }
    held
}

/// Every zone has an SOA record, which has its name.
fn find_zone_name(present: &[ListedRecord]) -> anyhow::Result<String> {
    let mut keys = present.iter().map(|record| &record.key);
    let soa = keys.find(|key| key.record_type == "SOA");
    let soa = soa.context("the hosted zone has no SOA record, which says its name")?;
    Ok(soa.name.clone())
}

/// Batches within the limits, the last one first.
pub(super) fn split_batches(changes: Vec<NameChange>) -> Vec<Vec<NameChange>> {
    let mut batches: Vec<Vec<NameChange>> = Vec::new();
    let (mut records, mut characters) = (0, 0);
    for change in changes {
        let contents = change.changes.iter().map(content_of);
        let values: Vec<&String> = contents.flat_map(|content| &content.values).collect();
        let length: usize = values.iter().map(|value| value.len()).sum();
        (records, characters) = (records + values.len(), characters + length);
        let full = records > MAX_RECORDS || characters > MAX_CHARACTERS;
        match batches.last_mut() {
            Some(batch) if !full => batch.push(change),
            _ => {
                (records, characters) = (values.len(), length);
                batches.push(vec![change]);
            }
        }
    }
    batches.reverse();
    batches
}

pub(super) fn content_of(change: &RecordChange) -> &RecordContent {
    let (RecordChange::Upsert(_, content) | RecordChange::Delete(_, content)) = change;
    content
}

fn describe_changes(changes: &[RecordChange]) -> String {
    let describe = |change: &RecordChange| match change {
        RecordChange::Delete(key, _) => format!("{} {} deleted", key.name, key.record_type),
        RecordChange::Upsert(key, content) => {
            let values: Vec<&str> = content.values.iter().map(String::as_str).collect();
            format!("{} {} {}", key.name, key.record_type, values.join(" "))
        }
    };
    let all: Vec<String> = changes.iter().map(describe).collect();
    all.join(", ")
}

fn describe_problems(
    wanted: &WantedNames,
    conflicts: &BTreeSet<Conflict>,
    refused: &BTreeMap<String, (NameChange, String)>,
) -> BTreeSet<String> {
    let of_objects = wanted.problems.iter().map(|one| {
        let (object, name) = (&one.object, untrusted_excerpt(&one.name));
        format!("{object} does not get the name {name}: {}", one.why)
    });
    let of_others = conflicts.iter().map(|one| {
        format!(
            "{}: the zone has a record {} that this cluster did not make; delete it, or take the name from the object",
            one.name, one.record_type
        )
    });
    let of_zone = refused
        .iter()
        .map(|(name, (_, why))| format!("{name}: Route 53 refuses the record: {why}"));
    of_objects.chain(of_others).chain(of_zone).collect()
}
