//! One look: what is wanted is compared with what was applied; the difference is applied, then what is left over removed.

use super::cluster::{Cluster, Removal};
use super::object::ObjectId;
use super::record::{Entry, NAME, NAMESPACE, Record};
use super::wanted;
use crate::log::Voice;
use anyhow::anyhow;
use aws_client::store::Store;
use kube::Client;
use node::addons::ChannelAddon;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What errors that are no addon's are about.
const ALL: &str = "addons";

/// Who looks, and what he remembers between looks.
pub(super) struct Follower {
    cluster: Cluster,
    store: Store,
    voice: Voice,
    /// Addons that somebody else may have applied at the same time in another version, and what was applied of them here: they are
    /// applied again, and what only this version had is removed.
    doubtful: BTreeMap<String, BTreeSet<ObjectId>>,
}

/// An addon to apply.
struct Work {
    addon: ChannelAddon,
    objects: Vec<Value>,
    ids: Vec<ObjectId>,
}

impl Follower {
    pub fn new(client: Client, store: Store, voice: Voice) -> Self {
        Self {
            cluster: Cluster::new(client),
            store,
            voice,
            doubtful: BTreeMap::new(),
        }
    }

    /// True if everything is as wanted.
    pub async fn look(&mut self) -> bool {
        match self.try_look().await {
            Ok(well) => {
                self.voice.well(ALL);
                well
            }
            Err(error) => {
                self.voice.failed(ALL, &error);
                false
            }
        }
    }

    /// A look was given up.
    pub fn too_long(&mut self, after: Duration) -> bool {
        let error = anyhow!("no end after {} seconds; trying again", after.as_secs());
        self.voice.failed(ALL, &error);
        false
    }

    async fn try_look(&mut self) -> anyhow::Result<bool> {
        let list = wanted::list(&self.store).await?;
        let mut record = Record::read(&self.cluster.client).await?;
        for name in std::mem::take(&mut record.unreadable) {
            let error = anyhow!(
                "its entry in ConfigMap {NAMESPACE}/{NAME} cannot be read: it is applied again"
            );
            self.voice.failed(&name, &error);
        }
        for (name, ids) in &self.doubtful {
            note(ids, record.entries.entry(name.clone()).or_default());
        }
        let (work, mut well) = self.work(&list, &record).await;
        for one in &work {
            note(
                &one.ids,
                record.entries.entry(one.addon.name.clone()).or_default(),
            );
        }
        record.write(&self.cluster.client).await?;
        // Until the record is written again: somebody else may write it before, or this look be given up.
        for one in &work {
            let doubt = self.doubtful.entry(one.addon.name.clone()).or_default();
            doubt.extend(one.ids.iter().cloned());
        }
        let mut applied = Vec::new();
        for one in &work {
            if self.apply(one).await {
                applied.push(one);
            } else {
                well = false;
            }
        }
        for one in &applied {
            well &= self.finish(one, &mut record).await;
        }
        for name in left(&list, &record) {
            well &= self.remove_addon(&name, &mut record).await;
        }
        record.write(&self.cluster.client).await?;
        for one in &applied {
            self.doubtful.remove(&one.addon.name);
        }
        self.doubtful
            .retain(|name, _| record.entries.contains_key(name));
        Ok(well)
    }

    /// The addons that are not applied as they are wanted, and whether all of those could be read.
    async fn work(&mut self, list: &[ChannelAddon], record: &Record) -> (Vec<Work>, bool) {
        let mut work = Vec::new();
        let mut well = true;
        for addon in list {
            let entry = record.entries.get(&addon.name);
            let applied = entry.and_then(|entry| entry.sha256.as_deref());
            let same = applied == Some(addon.manifest_hash.as_str());
            if same && !self.doubtful.contains_key(&addon.name) {
                self.voice.well(&addon.name);
                continue;
            }
            match self.read(addon).await {
                Ok(one) => work.push(one),
                Err(error) => {
                    self.voice.failed(&addon.name, &error);
                    well = false;
                }
            }
        }
        (work, well)
    }

    async fn read(&self, addon: &ChannelAddon) -> anyhow::Result<Work> {
        let objects = wanted::objects(&self.store, addon).await?;
        let ids = objects.iter().map(ObjectId::of).collect::<Result<_, _>>()?;
        Ok(Work {
            addon: addon.clone(),
            objects,
            ids,
        })
    }

    /// Applies the objects of an addon in their order. One that fails does not keep the others away: what they need may come
    /// later, and what is broken may be repaired by them. True if none failed.
    async fn apply(&mut self, work: &Work) -> bool {
        let name = &work.addon.name;
        let mut first = None;
        let mut failures = 0;
        for object in &work.objects {
            if let Err(error) = self.cluster.apply(object).await {
                failures += 1;
                first.get_or_insert(error);
            }
        }
        let Some(error) = first else {
            self.voice.well(name);
            let objects = match work.objects.len() {
                1 => "1 object".to_owned(),
                count => format!("{count} objects"),
            };
            self.voice.changed(&format!("{name}: {objects} applied"));
            return true;
        };
        let error = if failures > 1 {
            error.context(format!(
                "{failures} of {} objects failed",
                work.objects.len()
            ))
        } else {
            error
        };
        self.voice.failed(name, &error);
        false
    }

    /// Removes what an applied addon does not have any more, and notes that it is applied. True if nothing failed.
    async fn finish(&mut self, work: &Work, record: &mut Record) -> bool {
        let name = &work.addon.name;
        let entry = record.entries.entry(name.clone()).or_default();
        let over = entry.objects.iter().filter(|id| !work.ids.contains(id));
        let over: Vec<ObjectId> = over.cloned().collect();
        let kept = self.remove(name, &over).await;
        let well = kept.is_empty();
        *entry = Entry {
            sha256: well.then(|| work.addon.manifest_hash.clone()),
            objects: work.ids.iter().cloned().chain(kept).collect(),
        };
        well
    }

    /// Removes an addon that left the list. True if nothing failed.
    async fn remove_addon(&mut self, name: &str, record: &mut Record) -> bool {
        let objects = record.entries.get(name).map(|entry| entry.objects.clone());
        let kept = self.remove(name, &objects.unwrap_or_default()).await;
        if kept.is_empty() {
            record.entries.remove(name);
            self.voice.well(name);
            return true;
        }
        let entry = Entry {
            sha256: None,
            objects: kept,
        };
        record.entries.insert(name.to_owned(), entry);
        false
    }

    /// Removes objects of an addon, the last first; what could not be removed is handed back.
    async fn remove(&mut self, addon: &str, objects: &[ObjectId]) -> Vec<ObjectId> {
        let mut kept = Vec::new();
        for id in objects.iter().rev() {
            let about = format!("{addon}: {id}");
            match self.cluster.remove(id, addon).await {
                Ok(Removal::Removed) => self.voice.changed(&format!("{addon}: {id} removed")),
                Ok(Removal::Gone) => {}
                Ok(Removal::NotOurs) => {
                    let why = "is not wanted any more, and left alone: its labels do not say that it is kctl's";
                    self.voice.changed(&format!("{about} {why}"));
                }
                Err(error) => {
                    self.voice.failed(&about, &error);
                    kept.push(id.clone());
                    continue;
                }
            }
            self.voice.well(&about);
        }
        kept.reverse();
        kept
    }
}

/// Notes objects that may be there beside those that are noted. An addon that has new ones is not applied.
fn note<'a>(ids: impl IntoIterator<Item = &'a ObjectId>, entry: &mut Entry) {
    let before = entry.objects.len();
    for id in ids {
        if !entry.objects.contains(id) {
            entry.objects.push(id.clone());
        }
    }
    if entry.objects.len() > before {
        entry.sha256 = None;
    }
}

/// Names of addons that were applied and are not in the list.
fn left(list: &[ChannelAddon], record: &Record) -> Vec<String> {
    let wanted = |name: &&String| list.iter().any(|addon| addon.name == **name);
    let names = record.entries.keys();
    names.filter(|name| !wanted(name)).cloned().collect()
}
