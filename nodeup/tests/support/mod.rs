//! The outside of a machine, on loopback, and machines in folders.
#![allow(dead_code)] // Each test takes what it needs.

pub mod bootstrap;
pub mod files;
pub mod imds;
pub mod machine;
pub mod programs;
pub mod s3;
