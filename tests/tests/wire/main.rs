//! The AWS layer against the AWS simulator: the real SDK, real requests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that meets the unexpected fails, and tells its figures"
)]

mod budget;
mod cluster;
mod facts;
mod failures;
mod fence;
mod files;
mod fleet;
mod ipv6;
mod kinds;
mod object_records;
mod private_zone;
#[expect(dead_code, reason = "the tests of kctl use more of it")]
mod simulator;
mod spec;
mod store;
