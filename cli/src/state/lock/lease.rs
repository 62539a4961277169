//! The lease of a lock that is held: renews it in time, and gets it back after a pause if nobody else had it.

use super::{LockHolder, LockLoss, LockOptions, ObservedLock, put_holder, writable_time};
use crate::state::{LockKind, StoreKeys};
use aws_client::fence::{self, BootClockTime, Fence};
use aws_client::store::{Expect, Store, StoreError, Version};
use engine::error_chain;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// A pause ends after this many times the lease: then the lock is lost.
const PAUSE_IN_LIVES: u32 = 10;

#[derive(Debug)]
pub(super) struct Lease {
    /// Not fenced: renewals must work after the deadline of the fence.
    store: Store,
    keys: StoreKeys,
    kind: LockKind,
    pub(super) fence: Fence,
    life: Duration,
    held: Mutex<Held>,
}

/// What is stored, as far as known.
#[derive(Clone, Debug)]
pub(super) struct Held {
    holder: LockHolder,
    version: Version,
    /// When that version was sent.
    sent: BootClockTime,
}

impl Lease {
    /// The lease of a lock that was stored just now, and sent then.
    pub(super) fn begin(
        store: &Store,
        keys: &StoreKeys,
        options: &LockOptions<'_>,
        (holder, version): (LockHolder, Version),
        sent: BootClockTime,
    ) -> Self {
        let lease = Self {
            store: store.without_fence(),
            keys: keys.clone(),
            kind: options.kind,
            fence: store.fence().clone(),
            life: options.life,
            held: Mutex::new(Held {
                holder,
                version,
                sent,
            }),
        };
        lease.fence.allow_until(lease.deadline(sent));
        lease
    }

    /// The store for another runtime.
    pub(super) fn store_elsewhere(&self) -> Store {
        self.store.with_own_connections()
    }

    /// Until when writes may begin after a renewal that was sent then.
    fn deadline(&self, sent: BootClockTime) -> BootClockTime {
        sent.plus_duration(writable_time(self.life))
    }

    pub(super) fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the next renewal is due.
    pub(super) async fn wait_until_due(&self) {
        let due = self.held().sent.plus_duration(self.life / 3);
        sleep(due.remaining()).await;
    }

    /// Renews the lock once. Repeats a failed renewal until the deadline of the fence. If another process has written the lock, the lock
    /// is lost at once.
    pub(super) async fn renew_once(&self, store: &Store) -> Result<(), LockLoss> {
        let Held {
            holder, version, ..
        } = self.held().clone();
        let holder = holder.renewed_once();
        let (mut unsure, mut why): (Option<BootClockTime>, Option<String>) = (None, None);
        loop {
            let left = self.fence.remaining().unwrap_or_default();
            if left.is_zero() {
                return Err(LockLoss::Late(why));
            }
            let sent = fence::boot_clock_now();
            let expect = Expect::Version(version.clone());
            let key = self.keys.lock(self.kind);
            let renewal = put_holder(store, &key, &holder, expect);
            let renewed = match timeout(left.min(self.life / 5), renewal).await {
                Ok(Ok(version)) => Some(version),
                Ok(Err(StoreError::Conflict { .. })) if unsure.is_none() => {
                    return Err(LockLoss::Taken);
                }
                Ok(Err(StoreError::Conflict { .. })) => self.find_renewal(store, &holder).await?,
                Ok(Err(error)) => {
                    why = Some(error_chain(&error));
                    None
                }
                Err(_) => {
                    why = Some("the state store did not answer".to_owned());
                    None
                }
            };
            if let Some(version) = renewed {
                // An earlier attempt may be the one that succeeded.
                let sent = unsure.unwrap_or(sent);
                *self.held() = Held {
                    holder,
                    version,
                    sent,
                };
                let extended = self.fence.extend(self.deadline(sent));
                return extended.map_err(|_| LockLoss::Late(why));
            }
            unsure = unsure.or(Some(sent));
            sleep((self.life / 30).min(left)).await;
        }
    }

    /// After an attempt without a response: the version of the renewal if it was stored; `None` if the previous one is stored.
    async fn find_renewal(
        &self,
        store: &Store,
        renewed: &LockHolder,
    ) -> Result<Option<Version>, LockLoss> {
        let Ok(now) = ObservedLock::read(store, &self.keys, self.kind).await else {
            return Ok(None);
        };
        match now {
            Some(ObservedLock {
                holder: Some(holder),
                version,
                ..
            }) if holder == *renewed => Ok(Some(version)),
            Some(ObservedLock {
                holder: Some(holder),
                ..
            }) if holder.is_same_lock(renewed) => Ok(None),
            _ => Err(LockLoss::Taken),
        }
    }

    /// After the deadline: reads the lock, and renews what is there if it is this one, so that nobody else had it in between. Tries
    /// for a while if the store does not answer.
    pub(super) async fn get_back(&self, store: &Store) -> Result<(), LockLoss> {
        let end = fence::boot_clock_now().plus_duration(self.life * PAUSE_IN_LIVES);
        let mut why = None;
        while !end.remaining().is_zero() {
            match timeout(self.life / 3, self.take_back(store)).await {
                Ok(Ok(true)) => return Ok(()),
                Ok(Ok(false)) => return Err(LockLoss::Taken),
                Ok(Err(error)) => why = Some(error_chain(&error)),
                Err(_) => why = Some("the state store did not answer".to_owned()),
            }
            sleep(self.life / 30).await;
        }
        Err(LockLoss::Late(why))
    }

    /// Renews the lock that is stored if it is this one, and reopens the fence. False: another process took it over or released it.
    async fn take_back(&self, store: &Store) -> Result<bool, StoreError> {
        let key = self.keys.lock(self.kind);
        loop {
            let Some(stored) = store.get(&key).await? else {
                return Ok(false);
            };
            let mine = self.held().holder.clone();
            let holder = serde_json::from_slice::<LockHolder>(&stored.bytes).ok();
            let Some(holder) = holder.filter(|holder| holder.is_same_lock(&mine)) else {
                return Ok(false);
            };
            let (holder, sent) = (holder.renewed_once(), fence::boot_clock_now());
            let expect = Expect::Version(stored.version);
            match put_holder(store, &key, &holder, expect).await {
                Ok(version) => {
                    *self.held() = Held {
                        holder,
                        version,
                        sent,
                    };
                    return Ok(self.fence.resume(self.deadline(sent)).is_ok());
                }
                // Another process, or an own renewal whose answer was not heard.
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Deletes the lock. Retries, since a renewal in flight may have changed the version.
    pub(super) async fn delete_object(&self) {
        let Held {
            holder,
            mut version,
            ..
        } = self.held().clone();
        for _ in 0..3 {
            let deleted = self
                .store
                .delete(&self.keys.lock(self.kind), Expect::Version(version))
                .await;
            let Err(error) = deleted else { return };
            tracing::debug!(%error, "could not release the lock");
            match ObservedLock::read(&self.store, &self.keys, self.kind).await {
                Ok(Some(seen))
                    if seen
                        .holder
                        .as_ref()
                        .is_some_and(|now| now.is_same_lock(&holder)) =>
                {
                    version = seen.version;
                }
                _ => return,
            }
        }
    }
}
