//! Until when writes may begin. Who holds a lock may change things only as long as nobody else can have taken it over:
//! the holder moves the end with every renewal, and every write of every client and of the store asks here before it
//! begins, so that a process that was stopped for a while begins nothing more. If the holder gets the lock back before anybody else had
//! it, writes that waited go on.

pub(crate) mod wire;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Nanoseconds value of a fence without a deadline.
const OPEN: u64 = u64::MAX;

/// Nanoseconds value of a closed fence.
const SHUT: u64 = 0;

/// A write was not started because the lock that protects it was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lock was lost: nothing further was started")]
pub struct LockLost;

/// A time on the clock of [`boot_clock_now`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootClockTime(Duration);

impl BootClockTime {
    #[must_use]
    pub fn plus_duration(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }

    /// Time left until this moment; zero if it has passed.
    pub fn remaining(self) -> Duration {
        self.0.saturating_sub(boot_clock_now().0)
    }
}

/// The time since boot. It includes suspend, and setting the system clock does not change it.
pub fn boot_clock_now() -> BootClockTime {
    #[cfg(target_os = "linux")]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    // On these systems this clock includes suspend.
    #[cfg(not(target_os = "linux"))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(CLOCK);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let elapsed_nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
    BootClockTime(Duration::new(seconds, elapsed_nanoseconds))
}

/// Whether writes may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceState {
    /// They may.
    Open,
    /// The deadline has passed, and whoever holds the lock tries to get it back: writes wait.
    Paused,
    /// The lock is lost, for good.
    Closed,
}

/// The deadline for starting writes. Clones share it. A new fence has no deadline.
#[derive(Clone, Debug, Default)]
pub struct Fence(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Nanoseconds on the clock of [`boot_clock_now`].
    end: AtomicU64,
    /// Whether somebody reopens or closes it once the deadline has passed.
    is_resumable: AtomicBool,
    /// How often it was reopened.
    resumed: AtomicU64,
    /// Told when it is reopened or closed.
    changed: Notify,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            end: AtomicU64::new(OPEN),
            is_resumable: AtomicBool::new(false),
            resumed: AtomicU64::new(0),
            changed: Notify::new(),
        }
    }
}

impl Fence {
    /// Sets the deadline for starting writes.
    pub fn allow_until(&self, until: BootClockTime) {
        self.0.end.store(to_nanoseconds(until), Ordering::SeqCst);
    }

    /// Moves the deadline, unless it has passed.
    pub fn extend(&self, until: BootClockTime) -> Result<(), LockLost> {
        let passed = to_nanoseconds(boot_clock_now());
        let moved = self.move_end(until, |end| end > passed);
        if moved.is_err() {
            // Without anybody to reopen it, a deadline that has passed closes the fence.
            self.state();
        }
        moved
    }

    /// True: from now on somebody reopens or closes the fence after a deadline that has passed, and writes wait for that. False: such a
    /// deadline closes it.
    pub fn set_resumable(&self, is_resumable: bool) {
        self.0.is_resumable.store(is_resumable, Ordering::SeqCst);
        self.0.changed.notify_waiters();
    }

    /// Sets a new deadline after the old one has passed. For the holder of the lock, once it is certain that nobody else
    /// had it meanwhile. A closed fence stays closed.
    pub fn resume(&self, until: BootClockTime) -> Result<(), LockLost> {
        self.move_end(until, |end| end != SHUT)?;
        self.0.resumed.fetch_add(1, Ordering::SeqCst);
        self.0.changed.notify_waiters();
        Ok(())
    }

    /// How often the fence was reopened: what was seen before may be outdated after that.
    pub fn times_resumed(&self) -> u64 {
        self.0.resumed.load(Ordering::SeqCst)
    }

    fn move_end(&self, until: BootClockTime, if_end: impl Fn(u64) -> bool) -> Result<(), LockLost> {
        let moved = self
            .0
            .end
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |end| {
                if_end(end).then_some(to_nanoseconds(until))
            });
        moved.map(drop).map_err(|_| LockLost)
    }

    /// Refuses all further writes.
    pub fn close(&self) -> LockLost {
        self.0.end.store(SHUT, Ordering::SeqCst);
        self.0.changed.notify_waiters();
        LockLost
    }

    /// Removes the deadline.
    pub fn disarm(&self) {
        self.0.end.store(OPEN, Ordering::SeqCst);
        self.0.changed.notify_waiters();
    }

    /// Whether writes may start now. Once it is [`FenceState::Closed`], it stays so.
    pub fn state(&self) -> FenceState {
        match self.0.end.load(Ordering::SeqCst) {
            OPEN => FenceState::Open,
            end if end > to_nanoseconds(boot_clock_now()) => FenceState::Open,
            SHUT => FenceState::Closed,
            end => {
                if self.0.is_resumable.load(Ordering::SeqCst) {
                    return FenceState::Paused;
                }
                // Unless it was reopened this very moment.
                let closed =
                    self.0
                        .end
                        .compare_exchange(end, SHUT, Ordering::SeqCst, Ordering::SeqCst);
                match closed {
                    Ok(_) | Err(SHUT) => FenceState::Closed,
                    Err(_) => FenceState::Open,
                }
            }
        }
    }

    /// Fails if a write must not start now.
    pub fn check_open(&self) -> Result<(), LockLost> {
        match self.state() {
            FenceState::Open => Ok(()),
            FenceState::Paused | FenceState::Closed => Err(LockLost),
        }
    }

    /// Waits while the fence is paused. Fails if it is closed.
    pub async fn wait_until_open(&self) -> Result<(), LockLost> {
        loop {
            let mut changed = pin!(self.0.changed.notified());
            // What changes from here on is heard.
            changed.as_mut().enable();
            match self.state() {
                FenceState::Open => return Ok(()),
                FenceState::Closed => return Err(LockLost),
                FenceState::Paused => changed.await,
            }
        }
    }

    /// How long writes may still start; `None` without a deadline.
    pub fn remaining(&self) -> Option<Duration> {
        let end = self.0.end.load(Ordering::SeqCst);
        (end != OPEN).then(|| BootClockTime(Duration::from_nanos(end)).remaining())
    }
}

fn to_nanoseconds(moment: BootClockTime) -> u64 {
    // 584 years after the boot.
    u64::try_from(moment.0.as_nanos()).unwrap_or(OPEN - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_lets_writes_through_until_its_end_and_never_again() {
        let fence = Fence::default();
        let (past, ahead) = (
            boot_clock_now(),
            boot_clock_now().plus_duration(Duration::from_hours(1)),
        );
        assert_eq!(fence.check_open(), Ok(()));
        fence.allow_until(ahead);
        assert_eq!(
            fence.clone().check_open(),
            Ok(()),
            "clones are the same fence"
        );
        assert_eq!(
            fence.extend(ahead.plus_duration(Duration::from_secs(1))),
            Ok(())
        );
        fence.allow_until(past);
        assert_eq!(fence.extend(ahead), Err(LockLost), "it came too late");
        fence.allow_until(past);
        assert_eq!(fence.check_open(), Err(LockLost));
        assert_eq!(fence.extend(ahead), Err(LockLost));
        assert_eq!(fence.check_open(), Err(LockLost));
        assert_eq!(fence.remaining(), Some(Duration::ZERO));
        fence.disarm();
        assert_eq!((fence.check_open(), fence.remaining()), (Ok(()), None));
    }

    #[tokio::test]
    async fn a_resumable_fence_holds_writes_back_until_it_is_reopened_or_closed() {
        let now = boot_clock_now();
        let ahead = now.plus_duration(Duration::from_hours(1));
        for is_reopened in [true, false] {
            let fence = Fence::default();
            fence.set_resumable(true);
            fence.allow_until(now);
            assert_eq!(fence.state(), FenceState::Paused);
            assert_eq!(fence.check_open(), Err(LockLost));
            assert_eq!(fence.extend(ahead), Err(LockLost), "that is no renewal");
            assert_eq!(fence.state(), FenceState::Paused);
            let end = async {
                tokio::task::yield_now().await;
                match is_reopened {
                    true => fence.resume(ahead),
                    false => Err(fence.close()),
                }
            };
            let (waited, ended) = tokio::join!(fence.wait_until_open(), end);
            assert_eq!(waited, ended);
            assert_eq!(waited.is_ok(), is_reopened);
            assert_eq!(fence.times_resumed(), u64::from(is_reopened));
            fence.close();
            assert_eq!(fence.resume(ahead), Err(LockLost), "closed is closed");
            assert_eq!(fence.state(), FenceState::Closed);
        }
        let fence = Fence::default();
        fence.set_resumable(true);
        fence.allow_until(now);
        let left = async {
            tokio::task::yield_now().await;
            fence.set_resumable(false);
        };
        let (waited, ()) = tokio::join!(fence.wait_until_open(), left);
        assert_eq!(waited, Err(LockLost), "nobody is left to reopen it");
        assert_eq!(fence.resume(ahead), Err(LockLost));
    }
}
