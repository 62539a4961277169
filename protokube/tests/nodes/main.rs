//! How machines become nodes, against an STS that verifies signatures, an EC2 and an API server on loopback.
#![cfg(test)]

mod approval;
mod balancing;
#[path = "../support/control_plane.rs"]
mod control_plane;
mod fakes;
mod flood;
mod health;
mod joining;
mod labels;
mod real;
mod refusals;
mod removal;
mod reports;
#[path = "../support/store.rs"]
mod store;
