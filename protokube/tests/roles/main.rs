//! Tests of protokube's roles on test hosts in folders: volumes and etcd, manifests, names.
#![cfg(test)]

mod alarms;
mod call_rates;
mod commands;
mod disks;
mod etcd;
mod forgotten;
mod kernel;
mod manifests;
mod names;
mod recovery;
mod refused_volumes;
mod removal_of_members;
mod replacement;
#[path = "../support/store.rs"]
mod store;
mod test_host;
mod upgrade;
mod upkeep;
mod waits_report;
