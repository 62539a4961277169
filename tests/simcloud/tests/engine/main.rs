//! What the engine promises, against the simulated cloud. The planner and the apply loop are the real ones.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that meets the unexpected fails, and tells its figures"
)]

/// A million lives allocate a lot: a third of their time is saved.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod applying;
mod killing;
mod planning;
mod strategies;
