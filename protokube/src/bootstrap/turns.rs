//! Whose turn it is: an instance that was heard has to pause, so that one machine keeps neither EC2 nor the state store busy.

use node::bootstrap::Refusal;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// When instances were heard.
pub(super) struct Turns {
    pause: Duration,
    heard: Mutex<HashMap<String, Instant>>,
}

impl Turns {
    /// An instance's turns are that far apart.
    pub(super) fn every(pause: Duration) -> Self {
        Self {
            pause,
            heard: Mutex::default(),
        }
    }

    /// Takes an instance's turn, if it has one.
    pub(super) fn take(&self, instance: &str) -> Result<(), Refusal> {
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
        let turns = Turns::every(Duration::from_hours(1));
        assert_eq!(turns.take("i-1"), Ok(()));
        assert_eq!(turns.take("i-1"), Err(Refusal::Busy));
        assert_eq!(turns.take("i-2"), Ok(()));
        let turns = Turns::every(Duration::ZERO);
        assert_eq!(turns.take("i-1"), turns.take("i-1"), "its pause is over");
    }
}
