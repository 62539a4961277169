//! How often the outside is looked at: quickly while something changes, later and later while it is waited for, rarely once all is
//! well. AWS counts calls for a whole account, so what looks for ever must look rarely.

use futures::FutureExt;
use futures::future::BoxFuture;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// How a look ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Something changed: more may follow at once.
    Change,
    /// Something is missing that somebody else brings.
    Lack,
    /// All is as it should be.
    Rest,
}

/// Lets time pass.
pub type Sleep = fn(Duration) -> BoxFuture<'static, ()>;

/// The machine's time.
pub fn sleep(time: Duration) -> BoxFuture<'static, ()> {
    tokio::time::sleep(time).boxed()
}

/// The times between looks.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// After a change.
    pub quick: Duration,
    /// At most, while something is missing; it begins as quickly as after a change and doubles.
    pub waiting: Duration,
    /// At most, while nothing is missing.
    pub rest: Duration,
    /// How time passes.
    pub sleep: Sleep,
}

/// A pace that is kept.
#[derive(Clone, Debug)]
pub struct Rhythm {
    pace: Pace,
    next: Duration,
    /// Percent of each time, this machine's own: machines that start together do not ask together for ever.
    percent: u32,
}

impl Rhythm {
    /// That of one who looks from this machine (`i-...`).
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

    /// Something was done, and the next look follows at once: quick from then on.
    pub fn restart(&mut self) {
        self.next = self.pace.quick;
    }

    /// Waits for the next look where all is done: rarely from the first time on.
    pub async fn settled(&mut self) {
        self.next = self.pace.rest;
        self.wait(Seen::Rest).await;
        self.restart();
    }

    /// Waits for the next look.
    pub async fn wait(&mut self, seen: Seen) {
        (self.pace.sleep)(self.after(seen)).await;
    }

    /// How long until the next look.
    fn after(&mut self, seen: Seen) -> Duration {
        if seen == Seen::Change {
            self.next = self.pace.quick;
        }
        let longest = match seen {
            Seen::Rest => self.pace.rest,
            Seen::Change | Seen::Lack => self.pace.waiting,
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
        sleep,
    };

    fn seen() -> impl Strategy<Value = Seen> {
        prop_oneof![Just(Seen::Change), Just(Seen::Lack), Just(Seen::Rest)]
    }

    proptest! {
        #[test]
        fn a_change_is_followed_at_once_and_rest_and_waiting_slow_down(
            before in proptest::collection::vec(seen(), 0..20),
            machine in "i-[0-9a-f]{8}",
        ) {
            let mut rhythm = Rhythm::new(PACE, &machine);
            for seen in before {
                rhythm.after(seen);
            }
            let near = |waited: Duration, seconds: u64| {
                let wanted = Duration::from_secs(seconds);
                waited >= wanted * 9 / 10 && waited <= wanted * 11 / 10
            };
            prop_assert!(near(rhythm.after(Seen::Change), 5));
            let waits: Vec<Duration> = (0..4).map(|_| rhythm.after(Seen::Lack)).collect();
            prop_assert!(near(waits[0], 10) && near(waits[3], 20), "{waits:?}");
            let rests: Vec<Duration> = (0..4).map(|_| rhythm.after(Seen::Rest)).collect();
            prop_assert!(near(rests[3], 60), "{rests:?}");
        }
    }

    #[test]
    fn machines_keep_paces_of_their_own() {
        let paces: std::collections::BTreeSet<Duration> = (0..40)
            .map(|number| Rhythm::new(PACE, &format!("i-{number}")).after(Seen::Change))
            .collect();
        assert!(paces.len() > 10, "{paces:?}");
    }
}
