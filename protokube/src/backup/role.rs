//! Role backup: takes scheduled snapshots of an etcd cluster, one instance at a time, and deletes those that are not kept any more. It
//! needs neither the Kubernetes API nor EC2, and nothing else waits for it.

use super::prune::prune_snapshots;
use super::source::SnapshotSource;
use super::take::SnapshotTaker;
use crate::log::RoleLog;
use crate::pace::Sleep;
use anyhow::Context;
use aws_client::store::{Expect, Store, StoreError, Version};
use node::backup::{
    BACKUP_STATE_LIMIT, BackupDrill, BackupState, EtcdBackupSettings, LastSnapshot,
    SnapshotManifest, TickView, backup_state_key, begin_snapshot, end_snapshot, fail_snapshot,
    is_due, manifest_key,
};
use node::waits::bounded_text;
use std::sync::Arc;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Time between two looks.
const LOOK_INTERVAL: Duration = Duration::from_mins(1);

/// Limit of what is stored of a drill or of a problem, characters.
const TEXT_LIMIT: usize = 500;

/// Inputs of the role.
#[derive(Debug)]
pub struct BackupRole<S> {
    pub taker: Arc<SnapshotTaker<S>>,
    pub role_log: RoleLog,
    pub sleep: Sleep,
}

/// The state with what is needed to change it.
struct StoredState {
    state: BackupState,
    version: Option<Version>,
    age: Option<Duration>,
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
        // Why etcd does not answer is reported by other roles.
        let Ok(own) = self.taker.source.describe_member().await else {
            return Ok(true);
        };
        if own.learner || own.leader.is_none() {
            return Ok(true);
        }
        let backups = self.taker.open_backups(&settings.store)?;
        let stored = self.read_state().await?;
        let view = TickView {
            instance: &self.taker.instance,
            leads: own.leader.as_ref() == Some(&own.id),
            state_age: stored.age,
            last_age: self.age_of_last(&stored.state, &backups).await?,
            interval: settings.interval(),
        };
        if !is_due(&view, &stored.state) {
            return Ok(stored.state.failure.is_none());
        }
        self.take_scheduled(&settings, &backups, stored).await?;
        Ok(true)
    }

    async fn take_scheduled(
        &self,
        settings: &EtcdBackupSettings,
        backups: &Store,
        stored: StoredState,
    ) -> anyhow::Result<()> {
        let now = (self.taker.clock)();
        let (claimed, name) = begin_snapshot(&stored.state, &self.taker.instance, now);
        if !self.write_state(&claimed, stored.version).await? {
            // Another instance was first.
            return Ok(());
        }
        let counts = || async {
            let state = self.read_state().await?.state;
            Ok(state.taking.is_some_and(|claim| claim.name == name))
        };
        match self.taker.take(backups, (&name, "schedule"), counts).await {
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

    /// Once a day, downloads the snapshot that was just stored, and lets a scratch etcd read it. Its result stands in the state.
    async fn drill_daily(&self, name: &str) -> anyhow::Result<()> {
        let now = (self.taker.clock)();
        if !self.read_state().await?.state.is_drill_due(now) {
            return Ok(());
        }
        let begun = Instant::now();
        let verified = self.taker.verify_stored(name).await;
        let failed = verified.is_err();
        let found = verified.unwrap_or_else(|error| format!("{error:#}"));
        let drill = BackupDrill {
            name: name.to_owned(),
            instance: self.taker.instance.clone(),
            at: now.format(&Rfc3339).unwrap_or_default(),
            seconds: begun.elapsed().as_secs(),
            found: bounded_text(&found, TEXT_LIMIT),
            failed,
        };
        let with_drill = |state: &BackupState| {
            let drill = Some(drill.clone());
            Some(BackupState {
                drill,
                ..state.clone()
            })
        };
        self.change_state(with_drill).await?;
        self.role_log.report_change(&format!("drill: {found}"));
        Ok(())
    }

    async fn complete(&self, manifest: &SnapshotManifest, backups: &Store) -> anyhow::Result<()> {
        let verified = manifest.verified.as_ref();
        let last = LastSnapshot {
            name: manifest.name.clone(),
            store: backups.url().to_owned(),
            instance: self.taker.instance.clone(),
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
        self.change_state(|state| end_snapshot(state, last.clone()))
            .await
    }

    async fn record_failure(&self, name: &str, reason: &str) -> anyhow::Result<()> {
        let at = (self.taker.clock)().format(&Rfc3339).unwrap_or_default();
        let instance = &self.taker.instance;
        let fail = |state: &BackupState| fail_snapshot(state, name, (instance, reason, at.clone()));
        self.change_state(fail).await
    }

    /// Changes the state, unless the change does not apply to it any more.
    async fn change_state(
        &self,
        change: impl Fn(&BackupState) -> Option<BackupState>,
    ) -> anyhow::Result<()> {
        loop {
            let stored = self.read_state().await?;
            let Some(next) = change(&stored.state) else {
                return Ok(());
            };
            if self.write_state(&next, stored.version).await? {
                return Ok(());
            }
        }
    }

    fn state_key(&self) -> String {
        backup_state_key(&self.taker.etcd)
    }

    async fn read_state(&self) -> anyhow::Result<StoredState> {
        let key = self.state_key();
        let object = self.taker.store.get(&key).await;
        let object = object.with_context(|| format!("could not read {key}"))?;
        let Some(object) = object.filter(|object| object.bytes.len() < BACKUP_STATE_LIMIT) else {
            return Ok(StoredState {
                state: BackupState::default(),
                version: None,
                age: None,
            });
        };
        Ok(StoredState {
            state: BackupState::parse(&key, &object.bytes)?,
            version: Some(object.version),
            age: object.age,
        })
    }

    /// False if somebody else has changed it.
    async fn write_state(
        &self,
        state: &BackupState,
        version: Option<Version>,
    ) -> anyhow::Result<bool> {
        let key = self.state_key();
        let expect = version.map_or(Expect::Absent, Expect::Version);
        let put = self
            .taker
            .store
            .put(&key, state.to_json().into_bytes(), expect);
        match put.await {
            Ok(_) => Ok(true),
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error).with_context(|| format!("could not write {key}")),
        }
    }

    /// Age of the last snapshot by the clock of the backup store; `None`: it is not there, or another store is to be used.
    async fn age_of_last(
        &self,
        state: &BackupState,
        backups: &Store,
    ) -> anyhow::Result<Option<Duration>> {
        let Some(last) = state
            .last
            .as_ref()
            .filter(|last| last.store == backups.url())
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

/// What is said of a snapshot that was taken.
pub(crate) fn describe_taken(manifest: &SnapshotManifest, backups: &Store) -> String {
    let found = manifest.verified.as_ref();
    let found = found.map(|found| {
        format!(
            ": {} keys at revision {}, verified after {} s",
            found.keys, found.revision, found.seconds
        )
    });
    format!(
        "took the snapshot {}/{}{}",
        backups.url(),
        manifest.name,
        found.unwrap_or_default()
    )
}
