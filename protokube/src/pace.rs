//! Intervals of polling: short while something changes, growing while waiting, long once everything is done. AWS limits calls per
//! account, so permanent polling must be rare.

use futures::FutureExt;
use futures::future::BoxFuture;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// Result of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookResult {
    /// Something changed, and more may follow soon.
    Change,
    /// Something is missing that this process cannot provide.
    Lack,
    /// Everything is done.
    Rest,
}

/// A sleep function; tests provide their own.
pub type Sleep = fn(Duration) -> BoxFuture<'static, ()>;

/// Sleeps in real time.
pub fn sleep_for(time: Duration) -> BoxFuture<'static, ()> {
    tokio::time::sleep(time).boxed()
}

/// Intervals between polls.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Interval after a change.
    pub quick: Duration,
    /// Longest interval while something is missing; it begins with `quick` and doubles.
    pub waiting: Duration,
    /// Longest interval while nothing is missing.
    pub rest: Duration,
    /// Sleep function.
    pub sleep: Sleep,
}

/// State of polling with a pace.
#[derive(Clone, Debug)]
pub struct Rhythm {
    pace: Pace,
    next: Duration,
    /// Percentage of each interval, derived from the instance id, so that instances that start together do not poll together.
    percent: u32,
}

impl Rhythm {
    /// The rhythm of an instance (`i-...`).
    pub fn new(pace: Pace, machine: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        machine.hash(&mut hasher);
        let spread = u32::try_from(hasher.finish() % 21).unwrap_or_default();
        Self {
            pace,
            next: pace.quick,
            percent: 90 + spread,
        }
    }

    /// Starts again with the short interval.
    pub fn restart(&mut self) {
        self.next = self.pace.quick;
    }

    /// Waits the longest interval, because everything is done.
    pub async fn wait_settled(&mut self) {
        self.next = self.pace.rest;
        self.wait_after(LookResult::Rest).await;
        self.restart();
    }

    /// Waits until the next poll.
    pub async fn wait_after(&mut self, seen: LookResult) {
        (self.pace.sleep)(self.next_pause(seen)).await;
    }

    /// The time until the next poll.
    fn next_pause(&mut self, seen: LookResult) -> Duration {
        if seen == LookResult::Change {
            self.next = self.pace.quick;
        }
        let longest = match seen {
            LookResult::Rest => self.pace.rest,
            LookResult::Change | LookResult::Lack => self.pace.waiting,
        };
        let now = self.next.min(longest);
        self.next = (now * 2).min(self.pace.rest.max(self.pace.waiting));
        now * self.percent / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PACE: Pace = Pace {
        quick: Duration::from_secs(5),
        waiting: Duration::from_secs(20),
        rest: Duration::from_mins(1),
        sleep: sleep_for,
    };

    fn any_result() -> impl Strategy<Value = LookResult> {
        prop_oneof![
            Just(LookResult::Change),
            Just(LookResult::Lack),
            Just(LookResult::Rest)
        ]
    }

    proptest! {
        #[test]
        fn a_change_is_followed_at_once_and_rest_and_waiting_slow_down(
            before in proptest::collection::vec(any_result(), 0..20),
            machine in "i-[0-9a-f]{8}",
        ) {
            let mut rhythm = Rhythm::new(PACE, &machine);
            for seen in before {
                rhythm.next_pause(seen);
            }
            let near = |waited: Duration, seconds: u64| {
                let wanted = Duration::from_secs(seconds);
                waited >= wanted * 9 / 10 && waited <= wanted * 11 / 10
            };
            prop_assert!(near(rhythm.next_pause(LookResult::Change), 5));
            let waits: Vec<Duration> = (0..4).map(|_| rhythm.next_pause(LookResult::Lack)).collect();
            prop_assert!(near(waits[0], 10) && near(waits[3], 20), "{waits:?}");
            let rests: Vec<Duration> = (0..4).map(|_| rhythm.next_pause(LookResult::Rest)).collect();
            prop_assert!(near(rests[3], 60), "{rests:?}");
        }
    }

    #[test]
    fn machines_keep_paces_of_their_own() {
        let paces: std::collections::BTreeSet<Duration> = (0..40)
            .map(|number| Rhythm::new(PACE, &format!("i-{number}")).next_pause(LookResult::Change))
            .collect();
        assert!(paces.len() > 10, "{paces:?}");
    }
}
