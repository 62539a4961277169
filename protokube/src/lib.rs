//! protokube's parts, each with one entry point that runs until something breaks.

pub mod approval;
pub mod bootstrap;
pub mod health;
pub mod identity;
pub mod labels;
pub mod log;
mod watching;
