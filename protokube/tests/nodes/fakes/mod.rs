//! Fakes of what protokube communicates with: AWS, the API server and workers.

pub mod api;
pub mod aws;
mod cluster;
pub mod http;
mod log_lines;
mod rbac;
mod signature;
mod worker;

pub use cluster::{GROUP, INSTANCE, NAME, TestCluster, control_plane, running_instance};
pub use log_lines::LogLines;
pub use worker::{EndpointReply, FakeWorker};
