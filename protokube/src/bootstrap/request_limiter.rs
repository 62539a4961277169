//! Limits the request rate per instance, so that one instance cannot keep EC2 and the state store busy.

use crate::lock::lock_ignoring_poison;
use node::bootstrap::Refusal;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Times of the last requests by instance.
pub(super) struct RequestLimiter {
    interval: Duration,
    last_requests: Mutex<HashMap<String, Instant>>,
}

impl RequestLimiter {
    /// Requests of an instance must be at least `interval` apart.
    pub(super) fn with_interval(interval: Duration) -> Self {
        Self {
            interval,
            last_requests: Mutex::default(),
        }
    }

    /// Admits a request of an instance, or refuses it as busy.
    pub(super) fn admit_request(&self, instance: &str) -> Result<(), Refusal> {
        let now = Instant::now();
        let mut last_requests = lock_ignoring_poison(&self.last_requests);
        last_requests.retain(|_, at| now.duration_since(*at) < self.interval);
        if last_requests.contains_key(instance) {
            return Err(Refusal::Busy);
        }
        last_requests.insert(instance.to_owned(), now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_takes_its_own_turn_only() {
        let interval = RequestLimiter::with_interval(Duration::from_hours(1));
        assert_eq!(interval.admit_request("i-1"), Ok(()));
        assert_eq!(interval.admit_request("i-1"), Err(Refusal::Busy));
        assert_eq!(interval.admit_request("i-2"), Ok(()));
        let interval = RequestLimiter::with_interval(Duration::ZERO);
        assert_eq!(
            interval.admit_request("i-1"),
            interval.admit_request("i-1"),
            "its interval is over"
        );
    }
}
