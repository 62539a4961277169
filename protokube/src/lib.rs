//! protokube's parts, each with one entry point that runs until something breaks.

pub mod addons;
