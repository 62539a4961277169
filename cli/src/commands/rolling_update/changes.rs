//! Notices that somebody else changes the cluster during a rolling update, which then stops: instances would be compared with
//! what is no longer the cluster's spec.

use crate::error::{CommandError, ErrorKind};
use crate::state::{LockKind, LockState, ObservedLock, StoreKeys, store_error};
use aws_client::store::{Store, Version};
use time::OffsetDateTime;

/// The cluster as the last update left it.
#[derive(Debug)]
pub struct ChangeWatch<'a> {
    store: &'a Store,
    keys: &'a StoreKeys,
    /// The version of the completed spec.
    completed: Option<Version>,
}

impl<'a> ChangeWatch<'a> {
    /// Fails if somebody changes the cluster now.
    pub async fn begin(store: &'a Store, keys: &'a StoreKeys) -> Result<Self, CommandError> {
        let watch = Self {
            store,
            keys,
            completed: completed_version(store, keys).await?,
        };
        match watch.find_holder().await? {
            None => Ok(watch),
            Some(holder) => Err(CommandError::from_message(
                ErrorKind::Precondition,
                format!("{} is being changed by {holder}", keys.cluster()),
                "wait until that is done, then repeat the command",
            )),
        }
    }

    /// Who changes the cluster, or that somebody has changed it.
    pub async fn find_change(&self) -> Result<Option<String>, CommandError> {
        if let Some(holder) = self.find_holder().await? {
            return Ok(Some(format!("the cluster is being changed by {holder}")));
        }
        let completed = completed_version(self.store, self.keys).await?;
        let changed = completed != self.completed;
        Ok(changed.then(|| "the cluster was updated meanwhile".to_owned()))
    }

    async fn find_holder(&self) -> Result<Option<String>, CommandError> {
        let lock = ObservedLock::read(self.store, self.keys, LockKind::Changes).await?;
        let alive = lock.filter(|lock| matches!(lock.state(), LockState::Alive(_)));
        Ok(alive.map(|lock| lock.describe(OffsetDateTime::now_utc())))
    }
}

async fn completed_version(
    store: &Store,
    keys: &StoreKeys,
) -> Result<Option<Version>, CommandError> {
    let object = store.get(&keys.completed()).await.map_err(store_error)?;
    Ok(object.map(|object| object.version))
}
