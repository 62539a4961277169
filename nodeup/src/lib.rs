//! The parts of nodeup that are tested without a machine of their own.

pub mod host;
