//! Hosts as EC2 instances are: configured by cloud-init from IMDSv2, with a disk that outlives crashes, volumes that outlive
//! them, and nothing left behind. They need root on a machine that may mount, and say so where they do not run:
//! `cargo test -p lab --test hosts -- --ignored`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test"
)]

mod crashes;
mod double;
mod life;
mod machine;
