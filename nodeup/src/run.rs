//! What every stage of one run works with.

use crate::host::{Context, Signer};
use crate::identify::Identified;
use crate::place::Place;
use crate::stage::Stages;
use host::System;
use node::config::{BootConfig, Host};
use std::sync::Arc;
use std::time::SystemTime;

/// One run.
pub struct Run {
    /// Nothing but certificates is to be looked at.
    pub certificates: bool,
    /// Nothing is to be changed.
    pub dry_run: bool,
    /// What user data says.
    pub boot: BootConfig,
    /// Which machine it is.
    pub identified: Identified,
    /// Where it lies.
    pub place: Place,
    /// Its programs and mounts.
    pub system: Arc<dyn System>,
    /// The time.
    pub clock: fn() -> SystemTime,
}

impl Run {
    /// The machine's facts.
    pub fn host(&self) -> &Host {
        &self.identified.host
    }

    /// What host resources are looked at and changed with.
    pub fn context(&self, signer: Signer, trust_bundle: &str, stages: &Stages) -> Context {
        let clock = self.clock;
        Context {
            host: host::Host::new(self.place.root(), self.system.clone()),
            cache: self.place.cache(),
            signer: Arc::new(signer),
            trust_bundle: trust_bundle.to_owned(),
            clock: Arc::new(move || clock().into()),
            tell: stages.notes(),
        }
    }
}
