//! The lab's network as its users meet it: what reaches what, and what does not. Root only; says so when skipped.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test"
)]

#[path = "network/agreement.rs"]
mod agreement;
#[path = "network/balancing.rs"]
mod balancing;
#[path = "network/bench.rs"]
mod bench;
#[path = "network/faulty.rs"]
mod faulty;
#[path = "network/leases.rs"]
mod leases;
#[path = "network/reach.rs"]
mod reach;
#[path = "network/worlds.rs"]
mod worlds;
