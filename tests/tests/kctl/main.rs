//! The real `kctl` against the AWS simulator, as an operator would run it. Needs the binary: `make test` builds it
//! first; by hand, `cargo build --bin kctl`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that meets the unexpected fails, and tells its figures"
)]

mod kctl;
mod kills;
mod life;
mod locks;
mod meantime;
mod permissions;
mod plan_job;
mod races;
mod refused;
#[path = "../wire/simulator.rs"]
#[expect(dead_code, reason = "the wire tests use more of it")]
mod simulator;
