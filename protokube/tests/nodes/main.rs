//! Tests of how instances become nodes, with fake STS, EC2 and API server.
#![cfg(test)]

mod access;
mod approval;
#[path = "../support/control_plane.rs"]
mod control_plane;
mod fakes;
mod flood;
mod health;
mod health_checks;
mod joining;
mod labels;
mod object_names;
mod pod_ranges;
mod real_api_server;
mod refusals;
mod removal;
mod reports;
#[path = "../support/store.rs"]
mod store;
mod termination;
