//! What kctl and the members of etcd share in the state store and in backup stores: the formation record, the claim on upkeep, the state of
//! the backups, and the snapshots of a backup store with the changes after them. Every object is changed only as it was read.

#![warn(unreachable_pub)]

mod backup_store;
mod changes;
mod formation;
mod prune;
mod state_object;
mod upkeep_claims;

pub use backup_store::{
    OwnerError, check_owner, claim_store, delete_snapshot, describe_unread, list_snapshots,
    read_manifest, read_snapshots, require_manifest, require_own,
};
pub use changes::{
    PreparedPart, end_before, find_chain_end, find_part_behind, list_first_parts, list_parts,
    read_part, require_part, store_part,
};
pub use formation::{FormationStore, RECORD_LIMIT, StoredRecord};
pub use prune::{Extent, Superfluous, find_superfluous, prune_snapshots};
pub use state_object::{BackupStateObject, StoredState};
pub use upkeep_claims::UpkeepClaims;
