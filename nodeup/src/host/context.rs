//! What an apply works with, and what it came to.

use super::Signer;
use host::Host;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use time::OffsetDateTime;

/// What the desired state is put on.
#[derive(Clone)]
pub struct Context {
    /// The machine: its root folder, its programs and mounts, and whether it may still be changed.
    pub host: Host,
    /// Verified downloads, each called after its sha256.
    pub cache: PathBuf,
    /// Who signs certificates.
    pub signer: Arc<Signer>,
    /// Certificates of `kubernetes-ca` that are trusted, PEM: NodeConfig's.
    pub trust_bundle: String,
    /// The time.
    pub clock: Arc<dyn Fn() -> OffsetDateTime + Send + Sync>,
    /// Hears what was left out or is being waited for, a line at a time.
    pub tell: Arc<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("host", &self.host)
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

/// What an apply came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Ids of what was changed.
    pub changes: Vec<String>,
    /// Ids of what could not be changed, and why.
    pub failed: Vec<(String, String)>,
    /// Ids of what waits for something that failed, and for what.
    pub skipped: Vec<(String, Option<String>)>,
}

impl Applied {
    /// True if the machine is as it should be.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.skipped.is_empty()
    }

    /// Everything that failed in one text, or nothing.
    pub fn error(&self) -> Option<String> {
        let failed = self.failed.iter().map(|(id, why)| format!("{id}: {why}"));
        let text = failed.collect::<Vec<_>>().join("; ");
        (!self.is_complete()).then_some(text)
    }
}
