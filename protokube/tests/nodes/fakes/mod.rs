//! What protokube talks to, made up: AWS, the API server, and workers who ask it.

pub mod api;
pub mod aws;
mod cluster;
pub mod http;
mod lines;
mod signature;
mod worker;

pub use cluster::{Cluster, GROUP, INSTANCE, NAME, control_plane, instance};
pub use lines::Lines;
pub use worker::{Answer, Worker};
