//! What goes wrong, how often, and the one source of chance.

use std::cell::Cell;
use std::time::Duration;

/// Where a run is killed: at its n-th call (from 1), before or after the call takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    /// Number of the call, counted from 1.
    pub call: u64,
    /// After the effect, before the answer.
    pub after: bool,
}

/// What goes wrong. Chances are in percent of the calls.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Longest time from a write until reads show it.
    pub lag: Duration,
    /// Longest time that what answers a read may be behind, for each object another: a read may lack what an earlier one had, and
    /// show parts of a change.
    pub flicker: Duration,
    /// Longest time a call takes each way.
    pub latency: Duration,
    /// Longest time a NAT gateway or a load balancer takes to be usable, or a group or gateway to be gone.
    pub slow: Duration,
    pub throttled: u64,
    /// Calls whose outcome the caller does not learn; a third of them did nothing, a third happen seconds later.
    pub unknown: u64,
    /// References to something whose creation reads do not show yet that are refused.
    pub not_yet: u64,
    /// Calls that the process does not survive.
    pub killed: u64,
    /// The process dies at this call.
    pub kill: Option<Kill>,
    /// Kinds of object whose creation is denied.
    pub denied: Option<&'static str>,
    /// A kind of which no more than that many may exist.
    pub quota: Option<(&'static str, usize)>,
}

/// Chance from a seed (splitmix64).
#[derive(Clone, Debug)]
pub struct Rng(Cell<u64>);

impl Rng {
    /// Equal seeds give equal chances.
    pub fn new(seed: u64) -> Self {
        // Mixed, or the chances of the next seed were those of this one but for the first.
        let mixed = Self(Cell::new(seed)).next_number();
        Self(Cell::new(mixed))
    }

    pub fn next_number(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.0.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// True in that many of a hundred cases.
    pub fn is_within_percent(&self, chance: u64) -> bool {
        chance > 0 && self.next_number() % 100 < chance
    }

    /// Some time up to `most`.
    pub fn random_time(&self, most: Duration) -> Duration {
        let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.next_number() % (micros + 1))
    }
}
