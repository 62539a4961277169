//! kctl as users run it: the binary, a cleared environment, its output and its exit codes. Built as a test of the
//! `cli` crate, so that it runs the binary of the same build.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that meets the unexpected fails, and tells its figures"
)]

mod addons;
mod api_server;
mod assets;
mod behaviours;
mod bundles;
mod catalog;
mod cis;
mod cluster_state;
mod dashboard;
mod documented_commands;
mod etcd;
mod etcd_commands;
mod etcd_lost_volumes;
mod etcd_recover;
mod etcd_removal;
mod etcd_restore_times;
mod etcd_snapshots;
mod explain;
mod help;
mod instances;
mod internet;
mod json;
mod kctl;
mod kept;
mod kept_backups;
mod keypairs;
mod last_backup;
mod live_preflight;
mod names;
mod new_account;
mod not_yet;
mod offline;
mod operations;
mod own_objects;
mod ownership;
mod plans;
mod preflight;
mod render;
mod report;
mod rolling_update;
mod scenario;
mod schema;
mod secrets;
mod shared_network;
#[allow(dead_code)] // The wire tests use all of it.
#[path = "../wire/simulator.rs"]
mod simulator;
mod store;
mod store_place;
mod stored_secrets;
mod surroundings;
mod toolbox;
mod upgrade;
mod usage_errors;
