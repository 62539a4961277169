//! Limits the request rate per instance, so that one instance cannot keep EC2 and the state store busy.

use node::bootstrap::Refusal;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Times of the last requests by instance.
pub(super) struct Turns {
    pause: Duration,
    heard: Mutex<HashMap<String, Instant>>,
}

impl Turns {
    /// Requests of an instance must be at least `pause` apart.
    pub(super) fn with_pause(pause: Duration) -> Self {
        Self {
            pause,
            heard: Mutex::default(),
        }
    }

    /// Admits a request of an instance, or refuses it as busy.
    pub(super) fn take_turn(&self, instance: &str) -> Result<(), Refusal> {
        let now = Instant::now();
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.retain(|_, at| now.duration_since(*at) < self.pause);
        if heard.contains_key(instance) {
            return Err(Refusal::Busy);
        }
        heard.insert(instance.to_owned(), now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_takes_its_own_turn_only() {
        let turns = Turns::with_pause(Duration::from_hours(1));
        assert_eq!(turns.take_turn("i-1"), Ok(()));
        assert_eq!(turns.take_turn("i-1"), Err(Refusal::Busy));
        assert_eq!(turns.take_turn("i-2"), Ok(()));
        let turns = Turns::with_pause(Duration::ZERO);
        assert_eq!(
            turns.take_turn("i-1"),
            turns.take_turn("i-1"),
            "its pause is over"
        );
    }
}
