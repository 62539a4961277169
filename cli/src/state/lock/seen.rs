//! A lock as somebody finds it: whose it is, and whether that is still so by the store's clock.

use super::holder::{Holder, spoken};
use crate::error::CommandError;
use crate::state::{Keys, store_error};
use aws_client::store::{Store, Version};
use std::time::Duration;
use time::OffsetDateTime;

/// A lock that says nothing that can be read lives so long.
const UNREADABLE_LIFE: Duration = Duration::from_secs(30);

/// A lock that is there.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Whose it is; `None`: it cannot be read.
    pub holder: Option<Holder>,
    /// The version that was seen.
    pub version: Version,
    /// How long ago it was taken or renewed, at least, by the store's clock; `None`: the store does not say.
    pub age: Option<Duration>,
}

/// What a lock is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its holder may be at work. If it is dead the lock is free after that time; `None`: that cannot be told.
    Alive(Option<Duration>),
    /// It was not renewed for longer than its life.
    Expired,
    /// Its holder is known to have ended.
    Dead,
}

impl Standing {
    /// For programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Alive(_) => "alive",
            Self::Expired => "expired",
            Self::Dead => "dead",
        }
    }
}

impl Seen {
    /// The cluster's lock; `None`: nobody holds it.
    pub async fn read(store: &Store, keys: &Keys) -> Result<Option<Self>, CommandError> {
        let object = store.get(&keys.lock()).await.map_err(store_error)?;
        Ok(object.map(|object| Self {
            holder: serde_json::from_slice(&object.bytes).ok(),
            version: object.version,
            age: object.age,
        }))
    }

    /// How long it lives without a renewal.
    pub fn life(&self) -> Duration {
        self.holder.as_ref().map_or(UNREADABLE_LIFE, Holder::life)
    }

    /// Whether it still counts.
    pub fn standing(&self) -> Standing {
        if self.holder.as_ref().is_some_and(Holder::is_gone) {
            return Standing::Dead;
        }
        let Some(age) = self.age else {
            return Standing::Alive(None);
        };
        match self.life().checked_sub(age) {
            None | Some(Duration::ZERO) => Standing::Expired,
            left => Standing::Alive(left),
        }
    }

    /// Who holds it, and when it was last heard of.
    pub fn words(&self, now: OffsetDateTime) -> String {
        let holder = self.holder.as_ref().map_or_else(
            || "somebody (the lock cannot be read)".to_owned(),
            |holder| holder.words(now),
        );
        match self.age {
            Some(age) => format!("{holder}, renewed {} ago", spoken(age)),
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
        let mut seen = Seen {
            holder: Some(Holder::this("update", life)),
            version: Version("1".to_owned()),
            age: None,
        };
        let at = |seen: &mut Seen, age: Option<u64>| {
            seen.age = age.map(Duration::from_secs);
            seen.standing()
        };
        assert_eq!(
            at(&mut seen, Some(7)),
            Standing::Alive(Some(Duration::from_secs(1)))
        );
        assert_eq!(at(&mut seen, Some(8)), Standing::Expired);
        assert_eq!(at(&mut seen, None), Standing::Alive(None), "nobody knows");
        seen.holder = None;
        assert_eq!(
            at(&mut seen, Some(8)),
            Standing::Alive(Some(Duration::from_secs(22)))
        );
        assert_eq!(at(&mut seen, Some(30)), Standing::Expired);
    }
}
