//! What objects hold, by version, for buckets whose versions say nothing of the content: those that encrypt with KMS keys.

use super::Version;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Version and sha256 (hex) by key.
pub type Digests = BTreeMap<String, (String, String)>;

/// Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownDigests(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    known: Digests,
    /// Keys that were asked for, or learned.
    used: BTreeSet<String>,
}

impl KnownDigests {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over what an earlier process knew.
    pub(super) fn load(&self, known: Digests) {
        self.state().known = known;
    }

    pub(super) fn learn(&self, key: &str, version: &Version, sha256: String) {
        let mut state = self.state();
        let known = (version.0.clone(), sha256);
        state.known.insert(key.to_owned(), known);
        state.used.insert(key.to_owned());
    }

    /// True if the object is known to hold this at this version.
    pub(super) fn holds(&self, key: &str, version: &Version, sha256: &str) -> bool {
        let mut state = self.state();
        let known = state.known.get(key);
        let holds = known.is_some_and(|(of, digest)| *of == version.0 && digest == sha256);
        if holds {
            state.used.insert(key.to_owned());
        }
        holds
    }

    /// What was asked for or learned: the rest is of objects that nobody wants any more.
    pub(super) fn used(&self) -> Digests {
        let State { known, used } = &*self.state();
        let used = used.iter().filter_map(|key| known.get_key_value(key));
        used.map(|(key, known)| (key.clone(), known.clone()))
            .collect()
    }
}
