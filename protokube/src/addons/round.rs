//! One round of the role addons: compares the list with the record, applies differences, then removes what is left over.

use super::addon_list;
use super::cluster::{ApiCluster, RemovalResult};
use super::kinds::KindCache;
use super::object::ObjectId;
use super::record::{AddonEntry, AddonRecord, NAME, NAMESPACE};
use crate::api::ApiAccess;
use anyhow::anyhow;
use node::addons::{CHANNEL_KEY, ChannelAddon, HELM_CONTROLLER, HELM_VERSION, api_group};
use node::protokube::ACCESS_ADDON;
use protokube_role::log::RoleLog;
use protokube_role::signed_objects::SignedObjects;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Subject of errors that concern no single addon.
const ALL: &str = "addons";

/// Shortest time between two repairs of protokube's rights.
const REPAIR_INTERVAL: Duration = Duration::from_mins(10);

/// Kinds of which nothing is removed, with the groups of their API versions, and why.
const PROTECTED: [(&str, &str, &str); 4] = [
    (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "without it, every object of its kind would be deleted",
    ),
    (
        "",
        "Namespace",
        "with it, everything in it would be deleted",
    ),
    ("", "PersistentVolume", "it may hold data"),
    ("", "PersistentVolumeClaim", "it may hold data"),
];

/// State of the role between rounds.
pub(super) struct AddonReconciler {
    access: ApiAccess,
    kinds: KindCache,
    /// When the addon with protokube's rights was applied again.
    repaired: Option<Instant>,
    signed: SignedObjects,
    role_log: RoleLog,
    /// Addons that another control plane may have applied in another version meanwhile, with the objects applied here. They are
    /// applied again, and objects that only this version has are removed.
    doubtful: BTreeMap<String, BTreeSet<ObjectId>>,
}

/// An addon that must be applied.
struct PendingAddon {
    addon: ChannelAddon,
    objects: Vec<Value>,
    ids: Vec<ObjectId>,
}

impl AddonReconciler {
    pub(crate) fn new(access: ApiAccess, signed: SignedObjects, role_log: RoleLog) -> Self {
        Self {
            access,
            kinds: KindCache::default(),
            repaired: None,
            signed,
            role_log,
            doubtful: BTreeMap::new(),
        }
    }

    /// Runs one round. True if everything is as desired.
    pub(crate) async fn run_round(&mut self) -> bool {
        match self.try_round().await {
            Ok(well) => {
                self.role_log.clear_error(ALL);
                well
            }
            Err(error) => {
                self.role_log.report_error(ALL, &error);
                false
            }
        }
    }

    /// Reports that a round timed out.
    pub(crate) fn abandon_round(&mut self, after: Duration) -> bool {
        let error = anyhow!(
            "the round did not end within {} seconds; retrying",
            after.as_secs()
        );
        self.role_log.report_error(ALL, &error);
        false
    }

    async fn try_round(&mut self) -> anyhow::Result<bool> {
        let (list, serial) = addon_list::read_list(&self.signed).await?;
        let api = self.access.client().await?;
        let mut record = AddonRecord::read_record(&api.client).await?;
        record.serials = self.signed.merge_serials(&record.serials);
        // Again: another control plane may have used a newer list.
        self.signed.use_serial(CHANNEL_KEY, serial)?;
        for name in std::mem::take(&mut record.unreadable) {
            let error = anyhow!(
                "its entry in ConfigMap {NAMESPACE}/{NAME} cannot be parsed, so the addon is applied again"
            );
            self.role_log.report_error(&name, &error);
        }
        for (name, ids) in &self.doubtful {
            note_objects(ids, record.entries.entry(name.clone()).or_default());
        }
        if !api.granted && self.may_repair() {
            // Somebody has removed what it granted.
            if let Some(entry) = record.entries.get_mut(ACCESS_ADDON) {
                entry.sha256 = None;
                self.repaired = Some(Instant::now());
            }
        }
        let (work, mut well) = self.find_pending(&list, &record).await;
        for one in &work {
            note_objects(
                &one.ids,
                record.entries.entry(one.addon.name.clone()).or_default(),
            );
        }
        let unlisted = unlisted_addons(&list, &record);
        if work.is_empty() && unlisted.is_empty() && record.is_stored() {
            return Ok(well);
        }
        // Only for the changes of this round: without any, nobody is an administrator.
        let client = self.access.admin_client().await?;
        let mut cluster = ApiCluster::new(client, std::mem::take(&mut self.kinds));
        well &= self
            .change_cluster(&mut cluster, &work, unlisted, &mut record)
            .await?;
        self.kinds = cluster.into_kinds();
        Ok(well)
    }

    /// True if the addon with protokube's rights may be applied again. Where access rules do not count at all, it would be applied in
    /// every round.
    fn may_repair(&self) -> bool {
        let repaired = self.repaired.map(|at| at.elapsed());
        repaired.is_none_or(|ago| ago >= REPAIR_INTERVAL)
    }

    /// Applies what is pending and removes what is not listed. True if nothing failed.
    async fn change_cluster(
        &mut self,
        cluster: &mut ApiCluster,
        work: &[PendingAddon],
        unlisted: Vec<String>,
        record: &mut AddonRecord,
    ) -> anyhow::Result<bool> {
        let mut well = true;
        record.write_record(&cluster.client).await?;
        // Doubtful until the record is written again: another control plane may write it first, or this round may time out.
        for one in work {
            let doubt = self.doubtful.entry(one.addon.name.clone()).or_default();
            doubt.extend(one.ids.iter().cloned());
        }
        let mut applied = Vec::new();
        for one in work {
            if self.apply_addon(cluster, one).await {
                applied.push(one);
            } else {
                well = false;
            }
        }
        for one in &applied {
            well &= self.finish_addon(cluster, one, record).await;
        }
        for name in unlisted {
            well &= self.remove_addon(cluster, &name, record).await;
        }
        record.write_record(&cluster.client).await?;
        for one in &applied {
            self.doubtful.remove(&one.addon.name);
        }
        self.doubtful
            .retain(|name, _| record.entries.contains_key(name));
        Ok(well)
    }

    /// The addons that are not applied in the listed version, and whether all of them could be read.
    async fn find_pending(
        &mut self,
        list: &[ChannelAddon],
        record: &AddonRecord,
    ) -> (Vec<PendingAddon>, bool) {
        let mut work = Vec::new();
        let mut well = true;
        for addon in list {
            let entry = record.entries.get(&addon.name);
            let applied = entry.and_then(|entry| entry.sha256.as_deref());
            let same = applied == Some(addon.manifest_hash.as_str());
            if same && !self.doubtful.contains_key(&addon.name) {
                self.role_log.clear_error(&addon.name);
                continue;
            }
            match self.read_addon(addon).await {
                Ok(one) => work.push(one),
                Err(error) => {
                    self.role_log.report_error(&addon.name, &error);
                    well = false;
                }
            }
        }
        (work, well)
    }

    async fn read_addon(&self, addon: &ChannelAddon) -> anyhow::Result<PendingAddon> {
        let objects = addon_list::read_objects(self.signed.store(), addon).await?;
        let ids = objects
            .iter()
            .map(ObjectId::from_object)
            .collect::<Result<_, _>>()?;
        Ok(PendingAddon {
            addon: addon.clone(),
            objects,
            ids,
        })
    }

    /// Applies the objects of an addon in order. Continues after failures, because later objects may work or repair the cause. True if
    /// none failed.
    async fn apply_addon(&mut self, cluster: &mut ApiCluster, work: &PendingAddon) -> bool {
        let name = &work.addon.name;
        let mut first = None;
        let mut failures = 0;
        for object in &work.objects {
            if let Err(error) = cluster.apply_object(object).await {
                failures += 1;
                first.get_or_insert(error);
            }
        }
        let Some(error) = first else {
            self.role_log.clear_error(name);
            let objects = match work.objects.len() {
                1 => "1 object".to_owned(),
                count => format!("{count} objects"),
            };
            self.role_log
                .report_change(&format!("{name}: {objects} applied"));
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
        self.role_log.report_error(name, &error);
        false
    }

    /// Removes objects that the applied addon does not contain any more, and records that it is applied. True if nothing failed.
    async fn finish_addon(
        &mut self,
        cluster: &mut ApiCluster,
        work: &PendingAddon,
        record: &mut AddonRecord,
    ) -> bool {
        let name = &work.addon.name;
        let entry = record.entries.entry(name.clone()).or_default();
        let over = entry.objects.iter().filter(|id| !work.ids.contains(id));
        let over: Vec<ObjectId> = over.cloned().collect();
        let kept = self.remove_objects(cluster, name, &over).await;
        let well = kept.is_empty();
        *entry = AddonEntry {
            sha256: well.then(|| work.addon.manifest_hash.clone()),
            objects: work.ids.iter().cloned().chain(kept).collect(),
        };
        well
    }

    /// Removes an addon that is no longer listed. True if nothing failed.
    async fn remove_addon(
        &mut self,
        cluster: &mut ApiCluster,
        name: &str,
        record: &mut AddonRecord,
    ) -> bool {
        if name == HELM_CONTROLLER && self.has_charts(cluster).await {
            return false;
        }
        let objects = record.entries.get(name).map(|entry| entry.objects.clone());
        let kept = self
            .remove_objects(cluster, name, &objects.unwrap_or_default())
            .await;
        if kept.is_empty() {
            record.entries.remove(name);
            self.role_log.clear_error(name);
            return true;
        }
        let entry = AddonEntry {
            sha256: None,
            objects: kept,
        };
        record.entries.insert(name.to_owned(), entry);
        false
    }

    /// True if there are charts, or it is not known: helm-controller has to uninstall them before it goes.
    async fn has_charts(&mut self, cluster: &mut ApiCluster) -> bool {
        let error = match cluster.find_any(HELM_VERSION, "HelmChart").await {
            Ok(None) => return false,
            Ok(Some(chart)) => anyhow!(
                "it stays until its charts are uninstalled, of which {chart} is one: objects of the kind HelmChart that kctl did not apply must be deleted"
            ),
            Err(error) => error,
        };
        self.role_log.report_error(HELM_CONTROLLER, &error);
        true
    }

    /// Removes objects of an addon in reverse order, except protected ones. Returns those that could not be removed.
    async fn remove_objects(
        &mut self,
        cluster: &mut ApiCluster,
        addon: &str,
        objects: &[ObjectId],
    ) -> Vec<ObjectId> {
        let mut kept = Vec::new();
        for id in objects.iter().rev() {
            let about = format!("{addon}: {id}");
            if let Some(reason) = protection(id) {
                let what = "is no longer part of the addon but is left alone";
                self.role_log
                    .report_change(&format!("{about} {what}: {reason}"));
                continue;
            }
            match cluster.remove_object(id, addon).await {
                Ok(RemovalResult::Removed) => self
                    .role_log
                    .report_change(&format!("{addon}: {id} removed")),
                Ok(RemovalResult::Gone) => {}
                Ok(RemovalResult::NotOurs) => {
                    let why = "is no longer part of the addon but is left alone: its labels do not say that it belongs to kctl";
                    self.role_log.report_change(&format!("{about} {why}"));
                }
                Err(error) => {
                    self.role_log.report_error(&about, &error);
                    kept.push(id.clone());
                    continue;
                }
            }
            self.role_log.clear_error(&about);
        }
        kept.reverse();
        kept
    }
}

/// Why an object is left alone, if its kind is protected.
fn protection(id: &ObjectId) -> Option<&'static str> {
    let group = api_group(&id.api_version);
    let mut kinds = PROTECTED.iter();
    let row = kinds.find(|(of, kind, _)| group == *of && id.kind == *kind);
    row.map(|(_, _, reason)| *reason)
}

/// Adds objects to an entry. An entry with new objects does not count as applied.
fn note_objects<'a>(ids: impl IntoIterator<Item = &'a ObjectId>, entry: &mut AddonEntry) {
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

/// Names of recorded addons that are not in the list.
fn unlisted_addons(list: &[ChannelAddon], record: &AddonRecord) -> Vec<String> {
    let wanted = |name: &&String| list.iter().any(|addon| addon.name == **name);
    let names = record.entries.keys();
    names.filter(|name| !wanted(name)).cloned().collect()
}
