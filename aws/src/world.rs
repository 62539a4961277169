//! AWS as a [`World`]: one sweep, and the verbs of whichever kind an object is.

use crate::Clients;
use crate::kinds;
use crate::observe;
use crate::scope::Scope;
use crate::store::Store;
use model::cloud::Cloud;
use model::engine::{Failure, Observed, Put, Refs, Removed, Snapshot, World};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The AWS objects of one cluster.
#[derive(Debug)]
pub struct AwsWorld {
    pub(crate) clients: Clients,
    pub(crate) store: Store,
    pub(crate) scope: Scope,
    /// How often a removal was turned away because something is in the way, by physical id.
    turned_away: Mutex<BTreeMap<String, u32>>,
}

impl AwsWorld {
    /// The cluster of that scope, through those clients and with its objects in that store. Calls nothing.
    pub fn new(clients: Clients, store: Store, scope: Scope) -> Self {
        Self {
            clients,
            store,
            scope,
            turned_away: Mutex::default(),
        }
    }

    /// Counts a removal that was turned away; true if it is time to ask what is in the way: not at once,
    /// since most of it goes away by itself, and not every time.
    pub(crate) fn asks_who_blocks(&self, physical: &str) -> bool {
        let mut counts = self
            .turned_away
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(physical.to_owned()).or_default();
        *count += 1;
        count.is_multiple_of(6)
    }
}

impl World<Cloud> for AwsWorld {
    async fn observe(&self) -> Result<Snapshot<Cloud>, Failure> {
        Box::pin(observe::sweep(self)).await
    }

    async fn find(&self, want: &Cloud, refs: &Refs) -> Result<Option<Observed<Cloud>>, Failure> {
        kinds::find(self, want, refs).await
    }

    async fn put(
        &self,
        want: &Cloud,
        have: Option<&Observed<Cloud>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        kinds::put(self, want, have, refs).await
    }

    async fn remove(&self, have: &Observed<Cloud>) -> Result<Removed, Failure> {
        kinds::remove(self, have).await
    }

    async fn ready(&self, want: &Cloud, physical: &str) -> Result<Put, Failure> {
        kinds::ready(self, want, physical).await
    }

    async fn gone(&self, have: &Observed<Cloud>) -> Result<Removed, Failure> {
        kinds::gone(self, have).await
    }
}
