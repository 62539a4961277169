//! Role backup: takes scheduled snapshots of an etcd cluster, one instance at a time, and deletes those that are not kept any more. It
//! needs neither the Kubernetes API nor EC2, and nothing else waits for it.

use super::drill::TEXT_LIMIT;
use super::source::SnapshotSource;
use super::take::{SnapshotTaker, describe_taken};
use anyhow::Context;
use aws_client::store::Store;
use etcd_rules::RunningMember;
use etcd_rules::backup::{
    BackupState, CLAIM_LIFE, LastSnapshot, ObservedBackups, ScheduleView, SnapshotManifest,
    begin_snapshot, choose_drilled, end_snapshot, fail_snapshot, is_due, manifest_key, renew_claim,
};
use etcd_store::{
    BackupStateObject, Extent, StoredState, claim_store, list_snapshots, prune_snapshots,
};
use node::backup::EtcdBackupSettings;
use node::waits::bounded_text;
use protokube_role::lock::lock_ignoring_poison;
use protokube_role::log::RoleLog;
use protokube_role::pace::Sleep;
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

/// What fails for so long is reported. All of it is tried again, and most of it succeeds then.
const PATIENCE: Duration = Duration::from_mins(30);

/// What is not deleted costs money only.
const PRUNE_PATIENCE: Duration = Duration::from_hours(24);

/// A snapshot failed, and the state of the backups says why: `kctl validate` shows it there once the last one is too old.
#[derive(Debug, thiserror::Error)]
#[error("no snapshot {0} could be taken")]
struct FailureIsStored(String);

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
                Err(error) if error.is::<FailureIsStored>() => {
                    self.role_log.report_attempt(ABOUT, &error, Duration::MAX);
                }
                Err(error) => self.role_log.report_attempt(ABOUT, &error, PATIENCE),
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
            self.repeat_drill(&stored.state, &backups).await?;
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
        claim_store(backups, &self.taker.owner()).await?;
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
                // Neither waits for the other: a store that refuses deletions is drilled too.
                let drilled = self.drill_daily(&manifest.name, backups).await;
                self.prune(settings, backups).await;
                drilled
            }
            Err(error) => {
                let reason = format!("{error:#}");
                self.record_failure(&name, &reason).await?;
                Err(error.context(FailureIsStored(name)))
            }
        }
    }

    /// Deletes what is not kept any more. What could not be deleted is tried again after the next snapshot.
    async fn prune(&self, settings: &EtcdBackupSettings, backups: &Store) {
        const ABOUT: &str = "old snapshots";
        let how_many = (settings.retention(), Extent::Checked);
        let report = |line: &str| self.role_log.report_change(line);
        match prune_snapshots(backups, how_many, report).await {
            Ok(()) => self.role_log.report_resolved(ABOUT),
            Err(error) => {
                let error = error.context("old snapshots could not be deleted");
                self.role_log.report_attempt(ABOUT, &error, PRUNE_PATIENCE);
            }
        }
    }

    /// Keeps the claim young by the store's clock while the snapshot is taken. Somebody who was stopped for longer does not renew it, and one
    /// that hangs gives way in the end.
    async fn renew_claim(&self, name: &str) -> Infallible {
        for _ in 0..RENEWALS {
            tokio::time::sleep(CLAIM_LIFE / 3).await;
            let object = self.state();
            match object.change(|state| renew_claim(state, name)).await {
                Ok(()) => self.role_log.report_resolved("claim"),
                Err(error) => self.role_log.report_attempt("claim", &error, PATIENCE),
            }
        }
        std::future::pending().await
    }

    /// Once a day, downloads the snapshot that was just stored, or the one before with its changes, and lets a scratch etcd read it. What
    /// became of it stands in the state, where `kctl validate` finds it, and is no wait of this instance: a drill on another one, or one that
    /// somebody asks for, ends it there. `newest`: the name of the snapshot that was stored last.
    async fn drill_daily(&self, newest: &str, backups: &Store) -> anyhow::Result<()> {
        const ABOUT: &str = "drill";
        let now = (self.taker.clock)();
        let state = self.state().read().await?.state;
        if !state.is_drill_due(now) {
            return Ok(());
        }
        let name = match state.changes {
            Some(_) => choose_drilled(&list_snapshots(backups).await?, newest).to_owned(),
            None => newest.to_owned(),
        };
        match self.taker.drill(&name).await {
            Ok(found) => {
                self.role_log.clear_error(ABOUT);
                self.role_log.report_change(&format!("drill: {found}"));
            }
            Err(error) => self.role_log.report_attempt(ABOUT, &error, Duration::MAX),
        }
        Ok(())
    }

    /// Repeats a drill that came to no result on this instance, soon, and not only after the next snapshot.
    async fn repeat_drill(&self, state: &BackupState, backups: &Store) -> anyhow::Result<()> {
        let attempt = state.unfinished_drill.as_ref();
        let is_own = attempt.is_some_and(|attempt| attempt.instance == self.taker.instance);
        let last = state.last.as_ref();
        match last.filter(|last| is_own && last.store == backups.url()) {
            Some(last) => self.drill_daily(&last.name, backups).await,
            None => Ok(()),
        }
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
        Ok(read.and_then(|(_, age)| age.or_else(|| self.age_by_own_clock(last))))
    }

    /// `None`: a clock was wrong, and nobody knows how old it is.
    fn age_by_own_clock(&self, last: &LastSnapshot) -> Option<Duration> {
        let taken = OffsetDateTime::parse(&last.taken_at, &Rfc3339).ok()?;
        Duration::try_from((self.taker.clock)() - taken).ok()
    }
}
