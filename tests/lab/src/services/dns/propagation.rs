//! Changes of hosted zones reach Route 53's name servers some time after they were made.

use super::authority::Zones;
use crate::world::HostedZone;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the name servers answer from, and what is on its way to them.
#[derive(Debug)]
pub struct Propagation {
    delay: Duration,
    visible: Arc<Zones>,
    latest: Vec<HostedZone>,
    coming: VecDeque<(Instant, Arc<Zones>)>,
}

impl Propagation {
    /// What exists at the beginning is visible.
    pub fn new(delay: Duration, zones: &[HostedZone]) -> Self {
        Self {
            delay,
            visible: Arc::new(Zones::new(zones)),
            latest: zones.to_vec(),
            coming: VecDeque::new(),
        }
    }

    /// The zones as they are from `now` on.
    pub fn observe(&mut self, zones: &[HostedZone], now: Instant) {
        if zones == self.latest {
            return;
        }
        self.latest = zones.to_vec();
        let arrives = now + self.delay;
        self.coming
            .push_back((arrives, Arc::new(Zones::new(zones))));
    }

    /// What is answered at `now`.
    pub fn visible(&mut self, now: Instant) -> Arc<Zones> {
        while let Some((arrives, _)) = self.coming.front()
            && *arrives <= now
        {
            if let Some((_, zones)) = self.coming.pop_front() {
                self.visible = zones;
            }
        }
        Arc::clone(&self.visible)
    }
}
