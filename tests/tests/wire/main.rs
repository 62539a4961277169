//! The AWS layer against the AWS simulator: the real SDK, real requests.

mod cluster;
mod failures;
mod kinds;
mod simulator;
mod spec;
mod store;
