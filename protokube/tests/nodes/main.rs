//! How machines become nodes, against an STS that verifies signatures, an EC2 and an API server on loopback.
#![cfg(test)]

mod approval;
mod fakes;
mod health;
mod joining;
mod labels;
mod real;
mod refusals;
mod reports;
#[path = "../../../model/tests/support/mod.rs"]
mod support;
