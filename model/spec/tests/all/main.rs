//! What the spec promises, from reading to what is built from it.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests"
)]

mod accepted;
mod addons;
mod broken_specs;
mod components;
mod create;
mod expand;
mod fields;
mod fuzz;
mod host;
mod kops;
mod limits;
mod metrics_server;
mod node_config;
mod not_yet;
mod pki;
mod round_trip;
mod user_data;
mod values;
