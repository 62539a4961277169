//! What the lab's services promise, against real clients, on loopback and (as root) in network namespaces.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "all of this is a test"
)]

mod aws;
mod dns;
mod dns_laws;
mod dns_wire;
mod files;
mod front;
mod metadata;
mod namespaces;
mod registry;
mod support;
