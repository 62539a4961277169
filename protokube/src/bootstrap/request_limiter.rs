//! Limits the request rate per instance, so that one instance cannot keep EC2 and the state store busy. An instance is a session of a
//! role: another role's session with its name has a limit of its own.

use node::bootstrap::Refusal;
use protokube_role::lock::lock_ignoring_poison;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Times of the last requests by role and instance.
pub(super) struct RequestLimiter {
    interval: Duration,
    last_requests: Mutex<HashMap<(String, String), Instant>>,
}

impl RequestLimiter {
    /// Requests of an instance must be at least `interval` apart.
    pub(super) fn with_interval(interval: Duration) -> Self {
        Self {
            interval,
            last_requests: Mutex::default(),
        }
    }

    /// Admits a request of an instance with that role, or refuses it as busy.
    pub(super) fn admit_request(&self, role: &str, instance: &str) -> Result<(), Refusal> {
        let now = Instant::now();
        let caller = (role.to_owned(), instance.to_owned());
        let mut last_requests = lock_ignoring_poison(&self.last_requests);
        last_requests.retain(|_, at| now.duration_since(*at) < self.interval);
        if last_requests.contains_key(&caller) {
            return Err(Refusal::Busy);
        }
        last_requests.insert(caller, now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_takes_its_own_turn_only() {
        let interval = RequestLimiter::with_interval(Duration::from_hours(1));
        assert_eq!(interval.admit_request("nodes", "i-1"), Ok(()));
        assert_eq!(interval.admit_request("nodes", "i-1"), Err(Refusal::Busy));
        assert_eq!(interval.admit_request("nodes", "i-2"), Ok(()));
        assert_eq!(interval.admit_request("another", "i-3"), Ok(()));
        assert_eq!(interval.admit_request("nodes", "i-3"), Ok(()));
        let interval = RequestLimiter::with_interval(Duration::ZERO);
        assert_eq!(
            interval.admit_request("nodes", "i-1"),
            interval.admit_request("nodes", "i-1"),
            "its interval is over"
        );
    }
}
