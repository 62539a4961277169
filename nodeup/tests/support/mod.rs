//! Fakes of everything outside an instance, on the loopback address, and instances in folders.
#![allow(dead_code)] // Each test takes what it needs.

pub mod api_server;
pub mod autoscaling;
pub mod bootstrap;
pub mod files;
pub mod imds;
pub mod programs;
pub mod s3;
pub mod test_instance;
