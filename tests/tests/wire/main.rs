//! The AWS layer against the AWS simulator: the real SDK, real requests.

mod budget;
mod cluster;
mod facts;
mod failures;
mod kinds;
mod private_zone;
mod simulator;
mod spec;
mod store;
