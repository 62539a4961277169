//! Tests of protokube's roles on test hosts in folders: volumes and etcd, manifests, names.
#![cfg(test)]
// The roles are nested futures of generic types, in which the tests nest more.
#![recursion_limit = "256"]

mod alarms;
mod backups;
mod call_rates;
mod changes;
mod commands;
mod disks;
mod etcd;
mod etcd_backup;
mod forgotten;
mod kernel;
mod manifests;
mod names;
mod recovery;
mod refused_volumes;
mod removal_of_members;
mod replacement;
#[path = "../support/signer.rs"]
mod signer;
mod snapshot_restore;
#[path = "../support/store.rs"]
mod store;
mod test_host;
mod upgrade;
mod upkeep;
mod waits_report;
