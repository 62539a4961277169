//! State that all stages of one run share.

use crate::host::{HostContext, Signer};
use crate::identify::InstanceIdentity;
use crate::paths::NodeupPaths;
use crate::stage::Stages;
use host::System;
use node::config::{BootConfig, InstanceFacts};
use std::sync::Arc;
use std::time::SystemTime;

/// One run of nodeup.
pub struct Run {
    /// True if only certificates are renewed.
    pub certificates: bool,
    /// True if all of them are issued again, however long they are valid.
    pub force: bool,
    /// True if nothing is changed.
    pub dry_run: bool,
    /// BootConfig from user data.
    pub boot: BootConfig,
    /// Result of the stage identify.
    pub identified: InstanceIdentity,
    /// Paths of nodeup's files.
    pub paths: NodeupPaths,
    /// Programs and mounts of the instance.
    pub system: Arc<dyn System>,
    /// Clock for signatures and validity of certificates.
    pub clock: fn() -> SystemTime,
}

impl Run {
    /// Facts about the instance.
    pub fn facts(&self) -> &InstanceFacts {
        &self.identified.host
    }

    /// Inputs of observing and changing the instance.
    pub fn host_context(&self, signer: Signer, trust_bundle: &str, stages: &Stages) -> HostContext {
        let clock = self.clock;
        HostContext {
            host: host::Host::new(self.paths.root(), self.system.clone()),
            cache: self.paths.cache_folder(),
            signer: Arc::new(signer),
            trust_bundle: trust_bundle.to_owned(),
            clock: Arc::new(move || clock().into()),
            forced: self.force.then(Arc::default),
            note: stages.note_logger(),
        }
    }
}
