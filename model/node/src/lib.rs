//! Everything that kctl and the agents must agree on: NodeConfig, the desired state of instances, joining, certificates,
//! names, ports and settings. No I/O, no clock, no randomness.

pub mod addons;
pub mod api_health;
pub mod backup;
pub mod bootstrap;
pub mod cipher_suites;
pub mod components;
pub mod config;
pub mod digest;
pub mod duration;
pub mod etcd_problem;
pub mod formatted;
pub mod host;
pub mod manifests;
pub mod names;
pub mod next_step;
pub mod pki;
pub mod ports;
pub mod probe;
pub mod protokube;
pub mod report;
pub mod secret;
pub mod signed;
pub mod terminal;
pub mod termination;
pub mod values;
pub mod waits;
pub mod yaml;
