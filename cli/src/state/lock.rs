//! `lock`: one kctl at a time changes a cluster. The holder renews it at a third of its life, and begins no write once
//! the renewal fails to come in time: the fence of the store's clients sees to that. Others judge its age by the
//! store's clock, refuse while it lives, and take it over by its version once it does not.

mod holder;
mod seen;

pub use holder::{Holder, hostname, spoken};
pub use seen::{Seen, Standing};

use super::{Keys, store_error};
use crate::duration;
use crate::env;
use crate::error::{CommandError, Kind};
use aws_client::fence::{self, Fence, Moment};
use aws_client::store::{Expect, Store, StoreError, Version};
use std::cell::RefCell;
use std::fmt;
use std::time::Duration;
use time::OffsetDateTime;
use tokio::time::{Instant, sleep, timeout};

/// How long a lock lives without a renewal, unless the environment says otherwise.
const LIFE: Duration = Duration::from_secs(30);

/// What the environment may say: the store's clock has whole seconds, and others wait for a dead holder this long.
const LIVES: (Duration, Duration) = (Duration::from_secs(2), Duration::from_mins(10));

/// Giving a lock back holds nobody up longer than this.
const RELEASE: Duration = Duration::from_secs(5);

/// Between two looks at a lock that is waited for.
const LOOK: Duration = Duration::from_millis(500);

/// What a lock is taken for, and how.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The command.
    pub what: &'a str,
    /// How long the lock lives without a renewal.
    pub life: Duration,
    /// How long to wait for somebody else's.
    pub wait: Duration,
}

/// How long locks live: 30 seconds, or what the environment says.
pub fn life() -> Result<Duration, CommandError> {
    let Some(text) = env::value(env::LOCK_LIFE) else {
        return Ok(LIFE);
    };
    let (least, most) = LIVES;
    let wrong = |reason: String| {
        CommandError::usage(
            format!("{}={text} cannot be used: {reason}", env::LOCK_LIFE),
            "unset it: it is for tests",
        )
    };
    let life = duration::parse(&text).map_err(wrong)?;
    if (least..=most).contains(&life) {
        Ok(life)
    } else {
        Err(wrong("from 2s to 10m".to_owned()))
    }
}

/// Why a lock was lost.
#[derive(Debug)]
pub enum Lost {
    /// Somebody took it over or released it.
    Taken,
    /// It could not be renewed in time: the last failure, if there was one.
    Late(Option<String>),
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken => f.write_str("somebody else took the lock over"),
            Self::Late(None) => f.write_str("the lock was not renewed in time"),
            Self::Late(Some(why)) => write!(f, "the lock could not be renewed in time: {why}"),
        }
    }
}

/// A lock that is held.
#[derive(Debug)]
pub struct Lock {
    /// No fence stops what keeps the lock.
    store: Store,
    keys: Keys,
    fence: Fence,
    life: Duration,
    held: RefCell<(Holder, Version)>,
    /// When what is in the store was sent.
    sent: RefCell<Moment>,
}

impl Lock {
    /// Takes the lock, and raises the store's fence; `tell` hears whom this waits for and whose lock it took over.
    pub async fn take(
        store: &Store,
        keys: &Keys,
        terms: &Terms<'_>,
        tell: impl Fn(&str),
    ) -> Result<Self, CommandError> {
        let (unfenced, begun) = (store.unfenced(), Instant::now());
        let mut waits_for: Option<Holder> = None;
        let mut next = Some((Expect::Absent, None));
        loop {
            if let Some((expect, over)) = next.take() {
                let (holder, sent) = (Holder::this(terms.what, terms.life), fence::now());
                match put(&unfenced, keys, &holder, expect).await {
                    Ok(version) => {
                        let until = sent.after(writable(terms.life));
                        store.fence().raise(until);
                        over.iter().for_each(|over: &String| tell(over));
                        return Ok(Self {
                            store: unfenced,
                            keys: keys.clone(),
                            fence: store.fence().clone(),
                            life: terms.life,
                            held: RefCell::new((holder, version)),
                            sent: RefCell::new(sent),
                        });
                    }
                    Err(StoreError::Conflict { .. }) => {}
                    Err(error) => return Err(store_error(error)),
                }
            }
            let Some(seen) = Seen::read(&unfenced, keys).await? else {
                next = Some((Expect::Absent, None));
                continue;
            };
            if let Some(over) = free(&seen) {
                next = Some((Expect::Version(seen.version), Some(over)));
                continue;
            }
            let left = terms.wait.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(refused(&seen, keys, terms));
            }
            let known = |holder: &Holder| waits_for.as_ref().is_some_and(|known| holder.is(known));
            if !seen.holder.as_ref().is_some_and(known) {
                let (words, wait) = (seen.words(OffsetDateTime::now_utc()), spoken(terms.wait));
                tell(&format!("waiting, for {wait} at most: locked by {words}"));
                waits_for = seen.holder;
            }
            sleep(LOOK.min(left)).await;
        }
    }

    /// Renews it until it is lost, and says why; to be dropped with what it guards.
    pub async fn keep(&self) -> Lost {
        loop {
            let due = self.sent.borrow().after(self.life / 3);
            sleep(due.left()).await;
            if let Err(lost) = self.renew().await {
                self.fence.shut();
                return lost;
            }
        }
    }

    /// Renews it once. A renewal that fails is repeated as long as there is time; one that somebody else was ahead of
    /// is not.
    async fn renew(&self) -> Result<(), Lost> {
        let (holder, version) = self.held.borrow().clone();
        let holder = holder.again();
        let (mut unsure, mut why): (Option<Moment>, Option<String>) = (None, None);
        loop {
            let left = self.fence.left().unwrap_or_default();
            if left.is_zero() {
                return Err(Lost::Late(why));
            }
            let sent = fence::now();
            let expect = Expect::Version(version.clone());
            let renewal = put(&self.store, &self.keys, &holder, expect);
            let renewed = match timeout(left.min(self.life / 5), renewal).await {
                Ok(Ok(version)) => Some(version),
                Ok(Err(StoreError::Conflict { .. })) if unsure.is_none() => {
                    return Err(Lost::Taken);
                }
                Ok(Err(StoreError::Conflict { .. })) => self.found(&holder).await?,
                Ok(Err(error)) => {
                    why = Some(chain(&error));
                    None
                }
                Err(_) => {
                    why = Some("the state store did not answer".to_owned());
                    None
                }
            };
            if let Some(version) = renewed {
                // An earlier attempt may be the one that happened.
                let sent = unsure.unwrap_or(sent);
                let extended = self.fence.extend(sent.after(writable(self.life)));
                self.held.replace((holder, version));
                self.sent.replace(sent);
                return extended.map_err(|_| Lost::Late(why));
            }
            unsure = unsure.or(Some(sent));
            sleep((self.life / 30).min(left)).await;
        }
    }

    /// After an attempt without an answer: the version of our renewal, if it is there; `None` if the one before is.
    async fn found(&self, renewed: &Holder) -> Result<Option<Version>, Lost> {
        let Ok(now) = Seen::read(&self.store, &self.keys).await else {
            return Ok(None);
        };
        match now {
            Some(Seen {
                holder: Some(holder),
                version,
                ..
            }) if holder == *renewed => Ok(Some(version)),
            Some(Seen {
                holder: Some(holder),
                ..
            }) if holder.is(renewed) => Ok(None),
            _ => Err(Lost::Taken),
        }
    }

    /// True once nothing new may start, for good.
    pub fn is_lost(&self) -> bool {
        self.fence.check().is_err()
    }

    /// Gives it back. If that fails it ends by itself; one that was lost is not ours to give.
    pub async fn release(self) {
        if self.is_lost() {
            return;
        }
        if timeout(RELEASE, self.delete()).await.is_err() {
            tracing::debug!("could not release the lock in time");
        }
        self.fence.lower();
    }

    /// A renewal that was under way when the work ended may have changed the version.
    async fn delete(&self) {
        let (holder, mut version) = self.held.borrow().clone();
        for _ in 0..3 {
            let deleted = self
                .store
                .delete(&self.keys.lock(), Expect::Version(version))
                .await;
            let Err(error) = deleted else { return };
            tracing::debug!(%error, "could not release the lock");
            match Seen::read(&self.store, &self.keys).await {
                Ok(Some(seen)) if seen.holder.as_ref().is_some_and(|now| now.is(&holder)) => {
                    version = seen.version;
                }
                _ => return,
            }
        }
    }
}

/// How long after a renewal was sent writes may begin: short of its life, so that they are made before anybody else can
/// have the lock.
fn writable(life: Duration) -> Duration {
    life.saturating_sub(life / 6)
}

/// Why a lock may be taken over; `None`: it may not.
fn free(seen: &Seen) -> Option<String> {
    let whose = seen.words(OffsetDateTime::now_utc());
    match seen.standing() {
        Standing::Alive(_) => None,
        Standing::Expired => Some(format!(
            "took over a lock that has expired ({}): it was held by {whose}",
            spoken(seen.life())
        )),
        Standing::Dead => Some(format!(
            "took over a lock whose holder on this machine has ended: it was held by {whose}"
        )),
    }
}

fn refused(seen: &Seen, keys: &Keys, terms: &Terms<'_>) -> CommandError {
    let cluster = keys.cluster();
    let waited = if terms.wait.is_zero() {
        String::new()
    } else {
        format!(", still after {}", spoken(terms.wait))
    };
    let sentence = format!(
        "{cluster} is locked by {}{waited}",
        seen.words(OffsetDateTime::now_utc())
    );
    let error = CommandError::said(
        Kind::Precondition,
        sentence,
        format!(
            "wait until that is done: `kctl lock status {cluster}` shows it, `--lock-wait 10m` waits for it"
        ),
    );
    match seen.standing() {
        Standing::Alive(Some(left)) => error.hint(format!(
            "if that kctl has died the lock is free in {}: repeat the command then",
            spoken(left + Duration::from_secs(1))
        )),
        _ => error.hint(format!(
            "if that kctl has died: kctl lock release {cluster} --force"
        )),
    }
}

fn chain(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

async fn put(
    store: &Store,
    keys: &Keys,
    holder: &Holder,
    expect: Expect,
) -> Result<Version, StoreError> {
    // A struct of texts and numbers always has a JSON form; without one the lock would be one that nobody can read.
    let bytes = serde_json::to_vec(holder).unwrap_or_default();
    store.put(&keys.lock(), bytes, expect).await
}

#[cfg(test)]
#[path = "lock/lock_test.rs"]
mod tests;
