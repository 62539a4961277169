//! Role backup: takes scheduled snapshots of an etcd cluster, one instance at a time, and deletes those that are not kept any more. It
//! needs neither the Kubernetes API nor EC2, and nothing else waits for it.

use super::backup_store::claim_store;
use super::drill::TEXT_LIMIT;
use super::prune::prune_snapshots;
use super::source::SnapshotSource;
use super::state_object::{BackupStateObject, StoredState};
use super::take::{SnapshotTaker, describe_taken};
use crate::lock::lock_ignoring_poison;
use crate::log::RoleLog;
use crate::pace::Sleep;
use anyhow::Context;
use aws_client::store::Store;
use node::backup::{
    BackupState, CLAIM_LIFE, EtcdBackupSettings, LastSnapshot, ObservedBackups, ScheduleView,
    SnapshotManifest, begin_snapshot, end_snapshot, fail_snapshot, is_due, manifest_key,
};
use node::etcd::RunningMember;
use node::waits::bounded_text;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Time between two looks.
const LOOK_INTERVAL: Duration = Duration::from_mins(1);

/// How often a claim is renewed, a third of its life apart: no snapshot takes two hours.
const RENEWALS: u32 = 24;

/// What was read last of the backups, by etcd cluster.
pub type ObservedByEtcd = Mutex<BTreeMap<String, ObservedBackups>>;

/// Inputs of the role.
#[derive(Debug)]
pub struct BackupRole<S> {
    pub taker: Arc<SnapshotTaker<S>>,
    pub role_log: RoleLog,
    /// What is known of all etcd clusters' backups, for metrics.
    pub observed: Arc<ObservedByEtcd>,
    pub sleep: Sleep,
}

impl<S: SnapshotSource> BackupRole<S> {
    /// Takes snapshots for ever.
    pub async fn keep_backups(&self) -> anyhow::Result<()> {
        const ABOUT: &str = "backups";
        loop {
            match self.take_step().await {
                Ok(true) => self.role_log.report_resolved(ABOUT),
                Ok(false) => {}
                Err(error) => self.role_log.report_error(ABOUT, &error),
            }
            (self.sleep)(LOOK_INTERVAL).await;
        }
    }

    /// Looks, and takes a snapshot if one is due. False if the last one has failed, and the next one is not due yet.
    pub async fn take_step(&self) -> anyhow::Result<bool> {
        let Some(settings) = self.taker.read_settings().await? else {
            return Ok(true);
        };
        let stored = self.state().read().await?;
        self.observe(&settings, &stored.state);
        // Why etcd does not answer is reported by other roles.
        let Ok(own) = self.taker.source.describe_member().await else {
            return Ok(true);
        };
        if own.learner || own.leader.is_none() {
            return Ok(true);
        }
        let backups = self.taker.open_backups(&settings.store)?;
        let view = ScheduleView {
            instance: &self.taker.instance,
            leads: own.leader.as_ref() == Some(&own.id),
            state_age: stored.age,
            last_age: self.age_of_last(&stored.state, &own, &backups).await?,
            interval: settings.interval(),
        };
        if !is_due(&view, &stored.state) {
            return Ok(stored.state.failure.is_none());
        }
        self.take_scheduled(&settings, &backups, stored).await?;
        Ok(true)
    }

    fn observe(&self, settings: &EtcdBackupSettings, state: &BackupState) {
        let observed = ObservedBackups {
            settings: settings.clone(),
            state: state.clone(),
        };
        let etcd = self.taker.etcd.clone();
        lock_ignoring_poison(&self.observed).insert(etcd, observed);
    }

    async fn take_scheduled(
        &self,
        settings: &EtcdBackupSettings,
        backups: &Store,
        stored: StoredState,
    ) -> anyhow::Result<()> {
        claim_store(backups, &self.taker.cluster, &self.taker.etcd).await?;
        let now = (self.taker.clock)();
        let (claimed, name) = begin_snapshot(&stored.state, &self.taker.instance, now);
        if !self.state().write(&claimed, stored.version).await? {
            // Another instance was first.
            return Ok(());
        }
        let counts = || async {
            let state = self.state().read().await?.state;
            Ok(state.taking.is_some_and(|claim| claim.name == name))
        };
        let taken = tokio::select! {
            taken = self.taker.take(backups, (&name, "schedule"), counts) => taken,
            never = self.renew_claim(&name) => match never {},
        };
        match taken {
            Ok(manifest) => {
                self.complete(&manifest, backups).await?;
                self.role_log
                    .report_change(&describe_taken(&manifest, backups));
                let pruned = prune_snapshots(backups, settings.retention(), |line| {
                    self.role_log.report_change(line);
                });
                pruned.await.context("old snapshots could not be deleted")?;
                self.drill_daily(&manifest.name).await
            }
            Err(error) => {
                let reason = format!("{error:#}");
                self.record_failure(&name, &reason).await?;
                Err(error.context(format!("no snapshot {name} could be taken")))
            }
        }
    }

    /// Keeps the claim young by the store's clock while the snapshot is taken. Somebody who was stopped for longer does not renew it, and one
    /// that hangs gives way in the end.
    async fn renew_claim(&self, name: &str) -> Infallible {
        for _ in 0..RENEWALS {
            tokio::time::sleep(CLAIM_LIFE / 3).await;
            let renew = |state: &BackupState| {
                let claim = state.taking.as_ref();
                claim
                    .filter(|claim| claim.name == name)
                    .map(|_| state.clone())
            };
            if let Err(error) = self.state().change(renew).await {
                self.role_log.report_error("claim", &error);
            }
        }
        std::future::pending().await
    }

    /// Once a day, downloads the snapshot that was just stored, and lets a scratch etcd read it. Its result stands in the state.
    async fn drill_daily(&self, name: &str) -> anyhow::Result<()> {
        let now = (self.taker.clock)();
        if !self.state().read().await?.state.is_drill_due(now) {
            return Ok(());
        }
        match self.taker.drill(name).await {
            Ok(found) => self.role_log.report_change(&format!("drill: {found}")),
            Err(error) => {
                let error = error.context(format!("the snapshot {name} cannot be restored"));
                self.role_log.report_error("drill", &error);
            }
        }
        Ok(())
    }

    async fn complete(&self, manifest: &SnapshotManifest, backups: &Store) -> anyhow::Result<()> {
        let verified = manifest.verified.as_ref();
        let last = LastSnapshot {
            name: manifest.name.clone(),
            store: backups.url().to_owned(),
            instance: self.taker.instance.clone(),
            cluster_id: manifest.cluster_id.clone(),
            revision: verified
                .map(|verified| verified.revision)
                .unwrap_or_default(),
            compressed_bytes: manifest.compressed_bytes,
            taken_at: manifest.taken_at.clone(),
            cluster_state_problem: manifest
                .cluster_state_problem
                .as_ref()
                .map(|why| bounded_text(why, TEXT_LIMIT)),
        };
        self.state()
            .change(|state| end_snapshot(state, last.clone()))
            .await
    }

    async fn record_failure(&self, name: &str, reason: &str) -> anyhow::Result<()> {
        let at = (self.taker.clock)().format(&Rfc3339).unwrap_or_default();
        let instance = &self.taker.instance;
        let fail = |state: &BackupState| fail_snapshot(state, name, (instance, reason, at.clone()));
        self.state().change(fail).await
    }

    fn state(&self) -> BackupStateObject {
        BackupStateObject::new(&self.taker.store, &self.taker.etcd)
    }

    /// Age of the last snapshot by the clock of the backup store; `None`: it is not there, another store is to be used, or it is of an etcd
    /// cluster that was given up.
    async fn age_of_last(
        &self,
        state: &BackupState,
        own: &RunningMember,
        backups: &Store,
    ) -> anyhow::Result<Option<Duration>> {
        let Some(last) = state
            .last
            .as_ref()
            .filter(|last| last.store == backups.url())
            .filter(|last| {
                last.cluster_id
                    .as_ref()
                    .is_none_or(|id| *id == own.cluster_id)
            })
        else {
            return Ok(None);
        };
        let key = manifest_key(&last.name);
        let read = backups.get_first_with_age(&key, 1).await;
        let read = read.with_context(|| format!("could not read {}/{key}", backups.url()))?;
        // A store that says no age must not stop the backups.
        Ok(read.map(|(_, age)| age.unwrap_or_else(|| self.age_by_own_clock(last))))
    }

    fn age_by_own_clock(&self, last: &LastSnapshot) -> Duration {
        let taken = OffsetDateTime::parse(&last.taken_at, &Rfc3339);
        let age = taken.ok().map(|taken| (self.taker.clock)() - taken);
        age.and_then(|age| Duration::try_from(age).ok())
            .unwrap_or_default()
    }
}
