//! Until when writes may begin. Who holds a lock may change things only as long as nobody else can have taken it over:
//! the holder moves the end with every renewal, and every write of every client and of the store asks here before it
//! begins, so that a process that was stopped for a while begins nothing more.

pub(crate) mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// No end: nothing is guarded by a lock.
const OPEN: u64 = u64::MAX;

/// The end is over, for good.
const SHUT: u64 = 0;

/// A write was not begun, because the lock it was to be made under was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lock was lost: nothing further was started")]
pub struct Fenced;

/// A time on the clock of [`now`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// So much later.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }

    /// How long it is until then; zero if it is past.
    pub fn left(self) -> Duration {
        self.0.saturating_sub(now().0)
    }
}

/// The time since this machine booted, which goes on while it sleeps, and which nobody sets.
pub fn now() -> Moment {
    #[cfg(target_os = "linux")]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    // Goes on in sleep there.
    #[cfg(not(target_os = "linux"))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(CLOCK);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
    Moment(Duration::new(seconds, nanoseconds))
}

/// Until when writes may begin. Clones are the same fence. One that nobody raised lets everything through.
#[derive(Clone, Debug)]
pub struct Fence(Arc<AtomicU64>);

impl Default for Fence {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(OPEN)))
    }
}

impl Fence {
    /// From now on writes may begin only until then.
    pub fn raise(&self, until: Moment) {
        self.0.store(nanoseconds(until), Ordering::SeqCst);
    }

    /// Moves the end, if it is not over yet: what was lost stays lost.
    pub fn extend(&self, until: Moment) -> Result<(), Fenced> {
        let passed = nanoseconds(now());
        let moved = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |end| {
                (end > passed).then_some(nanoseconds(until))
            });
        moved.map(drop).map_err(|_| self.shut())
    }

    /// No write may begin any more.
    pub fn shut(&self) -> Fenced {
        self.0.store(SHUT, Ordering::SeqCst);
        Fenced
    }

    /// Nothing is guarded any more.
    pub fn lower(&self) {
        self.0.store(OPEN, Ordering::SeqCst);
    }

    /// Fails if a write must not begin now. Once it has failed it always does.
    pub fn check(&self) -> Result<(), Fenced> {
        match self.0.load(Ordering::SeqCst) {
            OPEN => Ok(()),
            end if end > nanoseconds(now()) => Ok(()),
            _ => Err(self.shut()),
        }
    }

    /// How long writes may still begin; `None`: for ever.
    pub fn left(&self) -> Option<Duration> {
        let end = self.0.load(Ordering::SeqCst);
        (end != OPEN).then(|| Moment(Duration::from_nanos(end)).left())
    }
}

fn nanoseconds(moment: Moment) -> u64 {
    // 584 years after the boot.
    u64::try_from(moment.0.as_nanos()).unwrap_or(OPEN - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_lets_writes_through_until_its_end_and_never_again() {
        let fence = Fence::default();
        let (past, ahead) = (now(), now().after(Duration::from_hours(1)));
        assert_eq!(fence.check(), Ok(()));
        fence.raise(ahead);
        assert_eq!(fence.clone().check(), Ok(()), "clones are the same fence");
        assert_eq!(fence.extend(ahead.after(Duration::from_secs(1))), Ok(()));
        fence.raise(past);
        assert_eq!(fence.extend(ahead), Err(Fenced), "it came too late");
        fence.raise(past);
        assert_eq!(fence.check(), Err(Fenced));
        assert_eq!(fence.extend(ahead), Err(Fenced));
        assert_eq!(fence.check(), Err(Fenced));
        assert_eq!(fence.left(), Some(Duration::ZERO));
        fence.lower();
        assert_eq!((fence.check(), fence.left()), (Ok(()), None));
    }
}
