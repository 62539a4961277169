//! The state of an etcd cluster's backups in the state store, changed only as it was read.

use anyhow::Context;
use aws_client::store::{Expect, Store, StoreError, Version};
use etcd_rules::backup::{BACKUP_STATE_LIMIT, BackupState, backup_state_key};
use std::time::Duration;

/// The object of one etcd cluster.
#[derive(Clone, Debug)]
pub struct BackupStateObject {
    store: Store,
    key: String,
}

/// The state with what is needed to change it.
#[derive(Default)]
pub struct StoredState {
    pub state: BackupState,
    pub version: Option<Version>,
    /// By the store's clock.
    pub age: Option<Duration>,
}

impl BackupStateObject {
    pub fn new(store: &Store, etcd: &str) -> Self {
        Self {
            store: store.clone(),
            key: backup_state_key(etcd),
        }
    }

    pub async fn read(&self) -> anyhow::Result<StoredState> {
        let key = &self.key;
        let object = self.store.get(key).await;
        let object = object.with_context(|| format!("could not read {key}"))?;
        let Some(object) = object else {
            return Ok(StoredState::default());
        };
        // One that is damaged stops no backups: at worst a snapshot and a drill are made once more, and take its place.
        let is_small = object.bytes.len() < BACKUP_STATE_LIMIT;
        let state = BackupState::parse(key, &object.bytes).ok();
        Ok(StoredState {
            state: state.filter(|_| is_small).unwrap_or_default(),
            version: Some(object.version),
            age: object.age,
        })
    }

    /// False if somebody else has changed it.
    pub async fn write(
        &self,
        state: &BackupState,
        version: Option<Version>,
    ) -> anyhow::Result<bool> {
        let expect = version.map_or(Expect::Absent, Expect::Version);
        let bytes = state.to_json().into_bytes();
        match self.store.put(&self.key, bytes, expect).await {
            Ok(_) => Ok(true),
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error).with_context(|| format!("could not write {}", self.key)),
        }
    }

    /// Changes the state, unless the change does not apply to it any more. What the change leaves of a claim or a failure is as old as it
    /// was.
    pub async fn change(
        &self,
        change: impl Fn(&BackupState) -> Option<BackupState>,
    ) -> anyhow::Result<()> {
        loop {
            let stored = self.read().await?;
            let aged = stored.state.aged(stored.age.unwrap_or_default());
            let Some(next) = change(&aged) else {
                return Ok(());
            };
            if self.write(&next, stored.version).await? {
                return Ok(());
            }
        }
    }
}
