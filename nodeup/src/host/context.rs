//! Inputs and result of an apply.

use super::Signer;
use host::Host;
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use time::OffsetDateTime;

/// Inputs of observing and changing the instance.
#[derive(Clone)]
pub struct HostContext {
    /// Access to the instance, with the stop condition.
    pub host: Host,
    /// Folder with verified downloads, each named after its sha256.
    pub cache: PathBuf,
    /// Source of certificates and secrets.
    pub signer: Arc<Signer>,
    /// Trusted certificates of `kubernetes-ca` from NodeConfig, PEM.
    pub trust_bundle: String,
    /// Clock for validity of certificates.
    pub clock: Arc<dyn Fn() -> OffsetDateTime + Send + Sync>,
    /// With `--force`: the paths of the certificates that this run has issued. Every other one is to be issued, however long it is valid.
    pub forced: Option<Arc<Mutex<BTreeSet<String>>>>,
    /// Receives one line for everything that was left out or is being waited for.
    pub note: Arc<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for HostContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostContext")
            .field("host", &self.host)
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

/// Result of an apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplyResult {
    /// Ids of changed objects.
    pub changes: Vec<String>,
    /// Ids of objects that could not be changed, with the reason.
    pub failed: Vec<(String, String)>,
    /// Ids of objects that were skipped, with the id of the failed object that they depend on.
    pub skipped: Vec<(String, Option<String>)>,
}

impl ApplyResult {
    /// True if the instance has its desired state.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.skipped.is_empty()
    }

    /// All failures in one text; `None` if the apply is complete.
    pub fn error_text(&self) -> Option<String> {
        let failed = self.failed.iter().map(|(id, why)| format!("{id}: {why}"));
        let text = failed.collect::<Vec<_>>().join("; ");
        (!self.is_complete()).then_some(text)
    }
}
