//! One cluster's part of AWS: through what it is reached, and what tells it from the rest.

use crate::CloudClients;
use crate::scope::Scope;
use aws_client::store::Store;
use cloud::Cloud;
use engine::{Id, Resource};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The AWS objects of one cluster.
#[derive(Debug)]
pub struct AwsWorld {
    pub(crate) clients: CloudClients,
    pub(crate) store: Store,
    pub(crate) scope: Scope,
    /// Where each wanted object is in the scope.
    places: BTreeMap<Id, usize>,
    /// How often a removal was turned away because something is in the way, by physical id.
    turned_away: Mutex<BTreeMap<String, u32>>,
}

impl AwsWorld {
    /// The cluster of that scope, through those clients and with its objects in that store. Calls nothing.
    pub fn new(clients: CloudClients, store: Store, scope: Scope) -> Self {
        let wanted = scope.expect.iter().enumerate();
        let places = wanted.map(|(place, one)| (one.id(), place)).collect();
        Self {
            places,
            clients,
            store,
            scope,
            turned_away: Mutex::default(),
        }
    }

    /// The wanted object with that id.
    pub(crate) fn find_desired(&self, id: &Id) -> Option<&Cloud> {
        self.scope.expect.get(*self.places.get(id)?)
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
