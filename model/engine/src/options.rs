//! How an apply runs: what it works with, how patient it is.

use super::resource::Id;
use std::time::Duration;

/// What an apply works with.
pub struct EngineContext<'a, W, J, C> {
    /// Where the objects are.
    pub world: &'a W,
    /// Where begun creations are noted.
    pub journal: &'a J,
    pub clock: &'a C,
    /// How patient it is.
    pub options: Options,
    /// Asked before every start and at least once a second: true once nothing new may start (an interrupt, a lost lock).
    pub stop: &'a dyn Fn() -> bool,
}

/// How patient an apply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Calls under way at once. A step that sleeps between two looks takes no place.
    pub parallelism: usize,
    /// How long one step may wait for the world without getting further.
    pub deadline: Duration,
    /// How long the world may say of what was just made that it is not there: after that it is not late but wrong.
    /// Terraform's bound for IAM and Auto Scaling (`propagationTimeout` in its AWS provider).
    pub unseen: Duration,
    /// How often a change whose outcome nobody knows is made.
    pub attempts: u32,
    /// How long after a change reads may not show it yet. AWS names no bound (its guide says to back off for
    /// up to minutes); what shows later than this is found as a duplicate by a later plan, and removed.
    pub settle: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            parallelism: 16,
            deadline: Duration::from_mins(10),
            unseen: Duration::from_mins(2),
            attempts: 5,
            settle: Duration::from_secs(15),
        }
    }
}

/// Doubles from `first` with each of `times` up to `most`, with a spread of a quarter either way that
/// depends on the step, so that steps that were turned away together do not come back together.
pub(super) fn backoff_delay(id: &Id, first: Duration, most: Duration, times: u32) -> Duration {
    let wait = first.saturating_mul(1 << times.min(16)).min(most);
    let spread = id
        .to_string()
        .bytes()
        .chain(times.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let percent = u32::try_from(75 + (spread >> 32) % 51).unwrap_or(100);
    wait * percent / 100
}

/// Whole milliseconds, for events.
pub(super) fn whole_millis(of: Duration) -> u64 {
    u64::try_from(of.as_millis()).unwrap_or(u64::MAX)
}
