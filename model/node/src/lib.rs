//! What kctl and the agents agree on: NodeConfig and what an instance is made of, how workers join, how etcd clusters are
//! formed, certificates, and every name. No I/O, no clock, no randomness.

pub mod addons;
pub mod bootstrap;
pub mod components;
pub mod config;
pub mod duration;
pub mod etcd;
pub mod host;
pub mod manifests;
pub mod names;
pub mod pki;
pub mod ports;
pub mod report;
pub mod secret;
pub mod terminal;
pub mod waits;
pub mod yaml;
