//! Intervals of polling: short while something changes, growing while waiting, long once everything is done. AWS limits calls per
//! account, so permanent polling must be rare.

use futures::FutureExt;
use futures::future::BoxFuture;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// Result of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollResult {
    /// Something changed, and more may follow soon.
    Change,
    /// Something is missing that this process cannot provide.
    Missing,
    Rest,
}

/// A sleep function; tests provide their own.
pub type Sleep = fn(Duration) -> BoxFuture<'static, ()>;

/// Sleeps in real time.
pub fn sleep_for(time: Duration) -> BoxFuture<'static, ()> {
    tokio::time::sleep(time).boxed()
}

#[derive(Clone, Copy, Debug)]
pub struct PollPace {
    /// Interval after a change.
    pub quick: Duration,
    /// Longest interval while something is missing; it begins with `quick` and doubles.
    pub waiting: Duration,
    /// Longest interval while nothing is missing.
    pub rest: Duration,
    pub sleep: Sleep,
}

/// State of polling with a pace.
#[derive(Clone, Debug)]
pub struct PollTimer {
    pace: PollPace,
    next: Duration,
    /// Percentage of each interval, derived from the instance id, so that instances that start together do not poll together.
    percent: u32,
}

impl PollTimer {
    /// The timer of an instance (`i-...`).
    pub fn new(pace: PollPace, instance: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        instance.hash(&mut hasher);
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
        self.wait_after(PollResult::Rest).await;
        self.restart();
    }

    /// Waits until the next poll.
    pub async fn wait_after(&mut self, seen: PollResult) {
        (self.pace.sleep)(self.next_pause(seen)).await;
    }

    /// The time until the next poll.
    fn next_pause(&mut self, seen: PollResult) -> Duration {
        if seen == PollResult::Change {
            self.next = self.pace.quick;
        }
        let longest = match seen {
            PollResult::Rest => self.pace.rest,
            PollResult::Change | PollResult::Missing => self.pace.waiting,
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

    const PACE: PollPace = PollPace {
        quick: Duration::from_secs(5),
        waiting: Duration::from_secs(20),
        rest: Duration::from_mins(1),
        sleep: sleep_for,
    };

    fn any_result() -> impl Strategy<Value = PollResult> {
        prop_oneof![
            Just(PollResult::Change),
            Just(PollResult::Missing),
            Just(PollResult::Rest)
        ]
    }

    proptest! {
        #[test]
        fn a_change_is_followed_at_once_and_rest_and_waiting_slow_down(
            before in proptest::collection::vec(any_result(), 0..20),
            instance in "i-[0-9a-f]{8}",
        ) {
            let mut timer = PollTimer::new(PACE, &instance);
            for seen in before {
                timer.next_pause(seen);
            }
            let near = |waited: Duration, seconds: u64| {
                let wanted = Duration::from_secs(seconds);
                waited >= wanted * 9 / 10 && waited <= wanted * 11 / 10
            };
            prop_assert!(near(timer.next_pause(PollResult::Change), 5));
            let waits: Vec<Duration> = (0..4).map(|_| timer.next_pause(PollResult::Missing)).collect();
            prop_assert!(near(waits[0], 10) && near(waits[3], 20), "{waits:?}");
            let rests: Vec<Duration> = (0..4).map(|_| timer.next_pause(PollResult::Rest)).collect();
            prop_assert!(near(rests[3], 60), "{rests:?}");
        }
    }

    #[test]
    fn machines_keep_paces_of_their_own() {
        let paces: std::collections::BTreeSet<Duration> = (0..40)
            .map(|number| {
                PollTimer::new(PACE, &format!("i-{number}")).next_pause(PollResult::Change)
            })
            .collect();
        assert!(paces.len() > 10, "{paces:?}");
    }
}
