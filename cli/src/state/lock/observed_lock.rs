//! A lock as another process reads it: its holder, and whether it is still valid by the store's clock.

use super::holder::{LockHolder, duration_words};
use crate::error::CommandError;
use crate::state::{LockKind, StoreKeys, store_error};
use aws_client::store::{Store, Version};
use std::time::Duration;
use time::OffsetDateTime;

/// Lease of a lock that cannot be read.
const UNREADABLE_LIFE: Duration = Duration::from_secs(30);

/// A lock in the store.
#[derive(Clone, Debug)]
pub struct ObservedLock {
    /// The holder; `None`: the content cannot be read.
    pub holder: Option<LockHolder>,
    /// The version that was read.
    pub version: Version,
    /// Time since it was acquired or renewed, at least, by the store's clock; `None`: unknown.
    pub age: Option<Duration>,
}

/// Whether a lock is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockState {
    /// Its holder may be running. The lock expires after that time without a renewal; `None`: unknown.
    Alive(Option<Duration>),
    /// It was not renewed within its lease.
    Expired,
    /// Its holder is known to have ended.
    Dead,
}

impl LockState {
    /// The value in JSON output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Alive(_) => "alive",
            Self::Expired => "expired",
            Self::Dead => "dead",
        }
    }
}

impl ObservedLock {
    /// Reads a lock of the cluster; `None`: nobody holds it.
    pub async fn read(
        store: &Store,
        keys: &StoreKeys,
        kind: LockKind,
    ) -> Result<Option<Self>, CommandError> {
        let object = store.get(&keys.lock(kind)).await.map_err(store_error)?;
        Ok(object.map(|object| Self {
            holder: serde_json::from_slice(&object.bytes).ok(),
            version: object.version,
            age: object.age,
        }))
    }

    pub fn life(&self) -> Duration {
        self.holder
            .as_ref()
            .map_or(UNREADABLE_LIFE, LockHolder::life)
    }

    /// Whether the lock is valid now.
    pub fn state(&self) -> LockState {
        if self.holder.as_ref().is_some_and(LockHolder::has_ended) {
            return LockState::Dead;
        }
        let Some(age) = self.age else {
            return LockState::Alive(None);
        };
        match self.life().checked_sub(age) {
            None | Some(Duration::ZERO) => LockState::Expired,
            left => LockState::Alive(left),
        }
    }

    /// The holder and the time since the last renewal, for messages.
    pub fn describe(&self, now: OffsetDateTime) -> String {
        let holder = self.holder.as_ref().map_or_else(
            || "somebody (the lock cannot be read)".to_owned(),
            |holder| holder.describe(now),
        );
        match self.age {
            Some(age) => format!("{holder}, renewed {} ago", duration_words(age)),
            None => holder,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_lives_as_long_as_it_says_by_the_age_the_store_tells() {
        let life = Duration::from_secs(8);
        let mut seen = ObservedLock {
            holder: Some(LockHolder::this_process("update", life)),
            version: Version("1".to_owned()),
            age: None,
        };
        let at = |seen: &mut ObservedLock, age: Option<u64>| {
            seen.age = age.map(Duration::from_secs);
            seen.state()
        };
        assert_eq!(
            at(&mut seen, Some(7)),
            LockState::Alive(Some(Duration::from_secs(1)))
        );
        assert_eq!(at(&mut seen, Some(8)), LockState::Expired);
        assert_eq!(at(&mut seen, None), LockState::Alive(None), "nobody knows");
        seen.holder = None;
        assert_eq!(
            at(&mut seen, Some(8)),
            LockState::Alive(Some(Duration::from_secs(22)))
        );
        assert_eq!(at(&mut seen, Some(30)), LockState::Expired);
    }
}
