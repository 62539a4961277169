//! The outside of a machine, on loopback.
#![allow(dead_code)] // Each test takes what it needs.

pub mod files;
