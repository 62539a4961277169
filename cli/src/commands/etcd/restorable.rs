//! Up to when each etcd cluster can be restored: by the clock of its backup store, or as the state of its backups tells it.

use super::EtcdReports;
use crate::commands::session::Session;
use crate::moment;
use crate::ui::etcd::RestorableRow;
use anyhow::Context;
use etcd_rules::backup::{
    FoundSnapshot, NewestRestorable, check_snapshot_name, group_snapshots, newest_restorable,
};
use etcd_store::read_manifest;

/// The chains of an etcd cluster that may have its newest moment.
struct Chains {
    etcd: String,
    /// Address of its backup store.
    store: String,
    /// etcd's id of the cluster, hex.
    cluster_id: String,
    /// The snapshot whose changes were stored last, and the newest one.
    snapshots: Vec<String>,
}

impl EtcdReports {
    /// Lists the chains that may have the newest moment of each etcd cluster, and nothing else of its backup store: one listing and one
    /// manifest for each snapshot. What cannot be read is one of the gaps; what protokube tells of it counts then.
    pub async fn read_restorable(&mut self, session: &Session<'_>) {
        let chains = self.find_chains();
        let reads = chains.iter().map(|one| one.read(session));
        let found = futures::future::join_all(reads).await;
        for (one, found) in chains.into_iter().zip(found) {
            match found {
                Ok(found) => drop(self.backups.restorable.insert(one.etcd, found)),
                Err(error) => self.gaps.push(format!(
                    "up to when etcd {} can be restored, its backup store does not say: {error:#}",
                    one.etcd
                )),
            }
        }
    }

    /// Of the etcd clusters whose changes are stored. Without a state of them nobody has begun.
    fn find_chains(&self) -> Vec<Chains> {
        let settings = self.backups.settings.iter().flat_map(|all| &all.etcd);
        let chains = settings.filter_map(|(etcd, settings)| {
            settings.changes_interval()?;
            let state = self.backups.states.get(etcd)?;
            let told = &state.changes.as_ref()?.snapshot;
            let cluster_id = self.records.get(etcd)?.formed_id()?;
            let newest = state.last.as_ref().map(|last| &last.name);
            let names = [told]
                .into_iter()
                .chain(newest.filter(|name| *name != told));
            Some(Chains {
                etcd: etcd.clone(),
                store: settings.store.clone(),
                cluster_id: cluster_id.to_owned(),
                snapshots: names
                    .filter(|name| check_snapshot_name(name).is_ok())
                    .cloned()
                    .collect(),
            })
        });
        chains.collect()
    }

    /// The newest moments that listings of the backup stores have shown.
    pub fn seen_restorable(&self) -> Vec<RestorableRow> {
        let seen = self.backups.restorable.iter();
        let rows = seen.filter_map(|(etcd, seen)| {
            let point = seen.point.as_ref()?;
            Some(RestorableRow {
                etcd: etcd.clone(),
                until: point.moment.map(moment::text),
                age_seconds: point.age.map(|age| age.as_secs()),
                snapshot: point.snapshot.clone(),
                parts: point.parts,
                clock: None,
            })
        });
        rows.collect()
    }

    /// The newest moments that the states of the backups tell, by the clocks of instances.
    pub fn told_restorable(&self) -> Vec<RestorableRow> {
        let settings = self.backups.settings.iter().flat_map(|all| &all.etcd);
        let rows = settings.filter_map(|(etcd, settings)| {
            settings.changes_interval()?;
            let told = self.backups.states.get(etcd)?.changes.as_ref()?;
            Some(RestorableRow {
                etcd: etcd.clone(),
                until: Some(told.at.clone()),
                age_seconds: None,
                snapshot: told.snapshot.clone(),
                parts: told.sequence,
                clock: Some(told.instance.clone()),
            })
        });
        rows.collect()
    }
}

impl Chains {
    async fn read(&self, session: &Session<'_>) -> anyhow::Result<NewestRestorable> {
        let opened = session.store.open_other(&self.store);
        let backups = opened.with_context(|| format!("{} is no backup store", self.store))?;
        let mut all = Vec::new();
        for name in &self.snapshots {
            let prefix = format!("{name}/");
            let listed = backups.list(&prefix, None).await;
            let listed =
                listed.with_context(|| format!("could not list {}/{prefix}", backups.url()))?;
            let objects = listed
                .iter()
                .map(|entry| (entry.key.as_str(), entry.size, entry.written, entry.age));
            let grouped = group_snapshots(objects).into_iter();
            let mut stored = grouped.filter(|one| one.name == *name);
            let Some(stored) = stored.next() else {
                continue;
            };
            all.push(FoundSnapshot {
                stored,
                manifest: read_manifest(&backups, name).await?,
                problem: None,
            });
        }
        Ok(newest_restorable(&all, &self.cluster_id))
    }
}
