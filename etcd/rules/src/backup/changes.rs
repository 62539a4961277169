//! The changes after a snapshot: etcd's watch from its revision on, stored in parts that are chained by hash. With them a restore reaches
//! moments between two snapshots. What is missing or changed in a chain is found, and nothing behind it is used.

mod batch;
mod chain;
mod choose;
mod event;
mod next;
mod part;
#[cfg(test)]
mod samples;
mod state;

pub use batch::{ChangesBatch, CollectedChanges};
pub use chain::{ChainEnd, check_follows};
pub use choose::{ChainGap, ChosenPoint, RestorePoint, RestoreTime, choose_restore_point};
pub use event::WatchedEvent;
pub use next::{ChainNames, ChainStep, choose_chains, next_chain_step};
pub use part::{ChangesPart, PART_FORMAT, PART_LIMIT, PartHeader, ReadPart};
pub use state::{ChangesFailure, ChangesState};

/// Why changes cannot be used, or not be collected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangesError {
    /// What lies in the place of a part is none that can be used.
    #[error("{what} is no part of changes that can be used: {why}")]
    Unusable {
        /// Its address.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// A part does not continue the chain before it.
    #[error("{key} does not follow what is before it: {why}")]
    Detached {
        /// The key that the part should have, relative to the backup store.
        key: String,
        /// What differs.
        why: String,
    },
    /// etcd's watch says what it cannot say, or more than a part may have: what was collected and not closed is given up, and the watch
    /// begins again behind the last part. If that does not help, the next snapshot begins a new chain.
    #[error("the watch of etcd cannot be followed: {0}")]
    Watch(String),
}
