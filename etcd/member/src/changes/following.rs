//! A chain that is being followed: its watch, what is in no part yet, and when the next part is due.

use super::role::View;
use anyhow::bail;
use aws_client::store::Store;
use etcd_rules::backup::{ChainEnd, ChangesBatch};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// A part is closed when it has so many bytes, uncompressed, although it is not time yet: it is in memory several times while it is stored.
pub(super) const PART_BYTES: usize = 4 << 20;

/// A chain is followed for so long before its end is read again, with a new watch: nodeup renews certificates.
pub(super) const SESSION_LIFE: Duration = Duration::from_mins(30);

/// The longest time between two looks at the clock and at what else matters.
const TICK: Duration = Duration::from_mins(1);

/// Time after which a part without changes shows that there are none.
const SIGN_OF_LIFE: Duration = Duration::from_mins(1);

/// The watch has to bring within this time what etcd has.
const BEHIND: Duration = Duration::from_secs(30);

/// A chain that is being followed.
#[derive(Debug)]
pub struct Following<W> {
    pub(super) backups: Store,
    /// Time after which a part is closed.
    pub(super) interval: Duration,
    /// How far the chain is stored.
    pub(super) end: ChainEnd,
    /// True for the chain before that of the newest snapshot.
    pub(super) is_before: bool,
    pub(super) watch: W,
    /// What is in no part yet.
    pub(super) batch: ChangesBatch,
    /// For how long leases were granted, seconds, by their ids, as far as etcd was asked.
    pub(super) leases: BTreeMap<u64, u64>,
    pub(super) begun: Instant,
    /// When it was last looked whether this chain is the one to follow.
    pub(super) looked: Instant,
    /// When a part was stored of which the state of the backups does not say anything yet.
    pub(super) untold: Option<OffsetDateTime>,
    /// When that state was written.
    pub(super) told: Option<Instant>,
    /// Ticks until the next part is closed.
    ticks: u32,
    /// How often nothing was there to be stored, since the last part.
    quiet: u32,
    /// A revision that etcd has and the watch did not bring yet, and since when that is known.
    awaited: Option<(u64, Instant)>,
}

impl<W> Following<W> {
    /// `batch`: an empty one behind the end of the chain, as the watch.
    pub(super) fn new(
        (backups, interval): (&Store, Duration),
        end: ChainEnd,
        (watch, batch): (W, ChangesBatch),
    ) -> Self {
        let now = Instant::now();
        Self {
            backups: backups.clone(),
            interval,
            end,
            is_before: false,
            watch,
            batch,
            leases: BTreeMap::new(),
            begun: now,
            looked: now,
            untold: None,
            told: None,
            ticks: divide_interval(interval).1,
            // Nobody knows how long ago the last sign was given.
            quiet: most_quiet(interval),
            awaited: None,
        }
    }

    /// True if a look shows that this is still the chain to follow.
    pub(super) fn fits(&self, view: &View) -> bool {
        let place = (self.backups.url(), self.interval, &*self.end.cluster_id);
        place == (view.backups.url(), view.interval, &*view.cluster_id)
            && self.end.snapshot == view.newest
    }

    /// True if it is time to close a part. Called once after each tick.
    pub(super) fn is_close_due(&mut self) -> bool {
        self.ticks = self.ticks.saturating_sub(1);
        if self.ticks > 0 {
            return false;
        }
        (_, self.ticks) = divide_interval(self.interval);
        true
    }

    /// True if a part without changes is due. `reached`: all changes up to this revision are stored; `current`: etcd's revision, asked after
    /// the watch. The error says that the watch brings no changes, although there are some.
    pub(super) fn is_sign_due(&mut self, reached: u64, current: u64) -> anyhow::Result<bool> {
        if current < reached {
            bail!("etcd is at revision {current}, and its watch has come to {reached}");
        }
        if current == reached {
            self.awaited = None;
            self.quiet = self.quiet.saturating_add(1);
            return Ok(self.quiet > most_quiet(self.interval));
        }
        let before = self.awaited.filter(|(awaited, _)| reached < *awaited);
        let (awaited, since) = before.unwrap_or((current, Instant::now()));
        if since.elapsed() >= BEHIND {
            bail!(
                "etcd has had revision {awaited} for {} s, and its watch brings nothing behind {reached}",
                since.elapsed().as_secs()
            );
        }
        self.awaited = Some((awaited, since));
        Ok(false)
    }

    /// Takes note of a part that was stored then, by the clock of this instance.
    pub(super) fn note_stored(&mut self, end: ChainEnd, at: OffsetDateTime) {
        self.end = end;
        self.untold = Some(at);
        self.quiet = 0;
        self.awaited = None;
    }
}

/// A tick, and how many of them it takes until a part is closed.
pub(super) fn divide_interval(interval: Duration) -> (Duration, u32) {
    let count = interval.as_secs().div_ceil(TICK.as_secs()).max(1);
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    (interval / count, count)
}

/// How often nothing is stored although it is time, one after the other.
fn most_quiet(interval: Duration) -> u32 {
    let times = SIGN_OF_LIFE.as_secs() / interval.as_secs().max(1);
    u32::try_from(times.saturating_sub(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_closed_after_the_interval_and_a_sign_is_given_each_minute() {
        for (seconds, tick, ticks, quiet) in [
            (1, 1, 1, 59),
            (5, 5, 1, 11),
            (60, 60, 1, 0),
            (90, 45, 2, 0),
            (3600, 60, 60, 0),
        ] {
            let interval = Duration::from_secs(seconds);
            let divided = divide_interval(interval);
            assert_eq!(divided, (Duration::from_secs(tick), ticks), "{seconds}");
            assert_eq!(most_quiet(interval), quiet, "{seconds}");
        }
        let (tick, ticks) = divide_interval(Duration::from_secs(u64::MAX));
        assert!(tick >= TICK && ticks == u32::MAX);
    }
}
