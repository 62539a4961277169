//! The locks of a cluster, each an object of the state store: only the holder of a lock makes the changes that it is for. The holder
//! renews it after a third of its lease, on a thread of its own. If a renewal is late, the fence of the AWS clients holds all further
//! writes back until the holder has the lock again, or stops them if another process had it. Other processes judge its age by the
//! store's clock, fail while it is valid, and take it over by version once it has expired.

mod holder;
mod lease;
mod observed_lock;
mod renewal;

pub use holder::{LockHolder, duration_words, host_name};
pub use observed_lock::{LockState, ObservedLock};
pub use renewal::LockEvent;

use super::{LockKind, StoreKeys, store_error};
use crate::duration;
use crate::env;
use crate::error::{CommandError, ErrorContext, ErrorKind};
use aws_client::fence::{self, FenceState};
use aws_client::store::{Expect, Store, StoreError, Version};
use lease::Lease;
use renewal::RenewalThread;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep, timeout};

/// Default lease: the time for which a lock is valid without renewal.
const LIFE: Duration = Duration::from_secs(30);

/// Least and greatest lease. The store's clock has whole seconds, and others wait this long for a dead holder.
const LIVES: (Duration, Duration) = (Duration::from_secs(2), Duration::from_mins(10));

/// Timeout for releasing a lock.
const RELEASE: Duration = Duration::from_secs(5);

/// Time between two reads of a lock that is waited for.
const LOOK: Duration = Duration::from_millis(500);

/// Options for acquiring a lock.
#[derive(Clone, Copy, Debug)]
pub struct LockOptions<'a> {
    /// The command that the lock is for.
    pub what: &'a str,
    pub kind: LockKind,
    pub life: Duration,
    /// How long to wait for another holder.
    pub wait: Duration,
}

/// The lease: 30 seconds, or the value of `KCTL_LOCK_LIFE`.
pub fn lock_life() -> Result<Duration, CommandError> {
    let Some(text) = env::get_variable(env::LOCK_LIFE) else {
        return Ok(LIFE);
    };
    let (least, most) = LIVES;
    let wrong = |reason: String| {
        CommandError::usage_error(
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
pub enum LockLoss {
    /// Another process took it over or released it.
    Taken,
    /// It was not renewed in time; with the last failure, if there was one.
    Late(Option<String>),
}

impl fmt::Display for LockLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken => f.write_str("another process took over the lock"),
            Self::Late(None) => f.write_str("the lock was not renewed in time"),
            Self::Late(Some(why)) => write!(f, "the lock could not be renewed in time: {why}"),
        }
    }
}

/// A lock that is held.
#[derive(Debug)]
pub struct ClusterLock {
    lease: Arc<Lease>,
    /// The thread that renews it, once that was started.
    renewal: RefCell<Option<RenewalThread>>,
}

impl ClusterLock {
    /// Acquires the lock and raises the store's fence. Passes messages about waiting and takeover to `tell`.
    pub async fn acquire(
        store: &Store,
        keys: &StoreKeys,
        options: &LockOptions<'_>,
        tell: impl Fn(&str),
    ) -> Result<Self, CommandError> {
        let (unfenced, begun) = (store.without_fence(), Instant::now());
        let mut waits_for: Option<LockHolder> = None;
        let mut next = Some((Expect::Absent, None));
        loop {
            if let Some((expect, over)) = next.take() {
                let (holder, sent) = (
                    LockHolder::this_process(options.what, options.life),
                    fence::boot_clock_now(),
                );
                match put_holder(&unfenced, &keys.lock(options.kind), &holder, expect).await {
                    Ok(version) => {
                        over.iter().for_each(|over: &String| tell(over));
                        let lease = Lease::begin(store, keys, options, (holder, version), sent);
                        return Ok(Self {
                            lease: Arc::new(lease),
                            renewal: RefCell::new(None),
                        });
                    }
                    Err(StoreError::Conflict { .. }) => {}
                    Err(error) => return Err(store_error(error)),
                }
            }
            let Some(lock) = ObservedLock::read(&unfenced, keys, options.kind).await? else {
                next = Some((Expect::Absent, None));
                continue;
            };
            if let Some(over) = takeover_reason(&lock) {
                next = Some((Expect::Version(lock.version), Some(over)));
                continue;
            }
            let time_left = options.wait.saturating_sub(begun.elapsed());
            if time_left.is_zero() {
                let waited = match options.wait.is_zero() {
                    true => String::new(),
                    false => format!(", still after {}", duration_words(options.wait)),
                };
                return Err(locked_error(&lock, keys, options.kind, &waited));
            }
            let known = |holder: &LockHolder| {
                waits_for
                    .as_ref()
                    .is_some_and(|known| holder.is_same_lock(known))
            };
            if !lock.holder.as_ref().is_some_and(known) {
                let (words, wait) = (
                    lock.describe(OffsetDateTime::now_utc()),
                    duration_words(options.wait),
                );
                tell(&format!("waiting, for {wait} at most: locked by {words}"));
                waits_for = lock.holder;
            }
            sleep(LOOK.min(time_left)).await;
        }
    }

    /// Starts the renewals, which go on until the lock is lost or released. Says what becomes of the lock.
    pub fn start_renewals(&self) -> Result<UnboundedReceiver<LockEvent>, CommandError> {
        let (thread, events) = RenewalThread::start(&self.lease).or_failed(
            "could not start the thread that renews the lock",
            "free some memory or file descriptors, and try again",
        )?;
        self.renewal.replace(Some(thread));
        Ok(events)
    }

    /// True once the lock is lost. It stays lost.
    pub fn is_lost(&self) -> bool {
        self.lease.fence.state() == FenceState::Closed
    }

    /// True while the lock could not be renewed in time, and nobody knows whether another process has it.
    pub fn is_paused(&self) -> bool {
        self.lease.fence.state() == FenceState::Paused
    }

    /// Waits until the lock is not paused any more.
    pub async fn wait_out_pause(&self) {
        let _ = self.lease.fence.wait_until_open().await;
    }

    /// How often the lock was got back after a pause: what was seen before may be outdated.
    pub fn times_resumed(&self) -> u64 {
        self.lease.fence.times_resumed()
    }

    /// Releases the lock. If that fails, it expires. A lost lock is not touched.
    pub async fn release(self) {
        let renewal = self.renewal.take();
        if let Some(renewal) = renewal {
            renewal.stop().await;
        }
        if self.is_lost() {
            return;
        }
        if timeout(RELEASE, self.lease.delete_object()).await.is_err() {
            tracing::debug!("could not release the lock in time");
        }
        self.lease.fence.disarm();
    }
}

/// How long after a renewal writes may begin: shorter than the lease, so that they arrive before another process can take
/// over the lock.
fn writable_time(life: Duration) -> Duration {
    life.saturating_sub(life / 6)
}

/// The message about a takeover; `None` if the lock must not be taken over.
fn takeover_reason(lock: &ObservedLock) -> Option<String> {
    let whose = lock.describe(OffsetDateTime::now_utc());
    match lock.state() {
        LockState::Alive(_) => None,
        LockState::Expired => Some(format!(
            "took over a lock that has expired ({}): it was held by {whose}",
            duration_words(lock.life())
        )),
        LockState::Dead => Some(format!(
            "took over a lock whose holder on this computer has ended: it was held by {whose}"
        )),
    }
}

/// The error about a lock that somebody else holds. `waited` says how long it was waited for.
pub fn locked_error(
    lock: &ObservedLock,
    keys: &StoreKeys,
    kind: LockKind,
    waited: &str,
) -> CommandError {
    let cluster = keys.cluster();
    let option = kind.option();
    let sentence = format!(
        "{cluster} is locked by {}{waited}",
        lock.describe(OffsetDateTime::now_utc())
    );
    let error = CommandError::from_message(
        ErrorKind::Precondition,
        sentence,
        format!(
            "wait until that is done: `kctl lock status {cluster}{option}` shows it, `--lock-wait 10m` waits for it"
        ),
    );
    match lock.state() {
        LockState::Alive(Some(left)) => error.with_hint(format!(
            "if that kctl has died the lock is free in {}: repeat the command then",
            duration_words(left + Duration::from_secs(1))
        )),
        _ => error.with_hint(format!(
            "if that kctl has died: kctl lock release {cluster}{option} --force"
        )),
    }
}

async fn put_holder(
    store: &Store,
    key: &str,
    holder: &LockHolder,
    expect: Expect,
) -> Result<Version, StoreError> {
    // A struct of texts and numbers always has a JSON form.
    let bytes = serde_json::to_vec(holder).unwrap_or_default();
    store.put(key, bytes, expect).await
}

#[cfg(test)]
#[path = "lock/lock_test.rs"]
mod tests;
