//! Until when writes may begin. Who holds a lock may change things only as long as nobody else can have taken it over:
//! the holder moves the end with every renewal, and every write of every client and of the store asks here before it
//! begins, so that a process that was stopped for a while begins nothing more.

pub(crate) mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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

/// The deadline for starting writes. Clones share it. A new fence has no deadline.
#[derive(Clone, Debug)]
pub struct Fence(Arc<AtomicU64>);

impl Default for Fence {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(OPEN)))
    }
}

impl Fence {
    /// Sets the deadline for starting writes.
    pub fn allow_until(&self, until: BootClockTime) {
        self.0.store(to_nanoseconds(until), Ordering::SeqCst);
    }

    /// Moves the deadline, unless it has passed: a lost lock stays lost.
    pub fn extend(&self, until: BootClockTime) -> Result<(), LockLost> {
        let passed = to_nanoseconds(boot_clock_now());
        let moved = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |end| {
                (end > passed).then_some(to_nanoseconds(until))
            });
        moved.map(drop).map_err(|_| self.close())
    }

    /// Refuses all further writes.
    pub fn close(&self) -> LockLost {
        self.0.store(SHUT, Ordering::SeqCst);
        LockLost
    }

    /// Removes the deadline.
    pub fn disarm(&self) {
        self.0.store(OPEN, Ordering::SeqCst);
    }

    /// Fails if a write must not start now. Once it has failed, it always fails.
    pub fn check_open(&self) -> Result<(), LockLost> {
        match self.0.load(Ordering::SeqCst) {
            OPEN => Ok(()),
            end if end > to_nanoseconds(boot_clock_now()) => Ok(()),
            _ => Err(self.close()),
        }
    }

    /// How long writes may still start; `None` without a deadline.
    pub fn remaining(&self) -> Option<Duration> {
        let end = self.0.load(Ordering::SeqCst);
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
}
