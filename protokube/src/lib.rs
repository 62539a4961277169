//! protokube runs the control plane of one instance: etcd volumes and members, manifests, DNS names, the bootstrap endpoint, addons.
//! Each is a role with one entry point that runs until an error.

pub mod addons;
pub mod api;
pub mod approval;
pub mod arguments;
pub mod bootstrap;
pub mod daemon;
pub mod ec2;
pub mod etcd;
pub mod health;
pub mod identity;
pub mod keysets;
pub mod labels;
pub mod log;
pub mod manifests;
pub mod names;
pub mod pace;
pub mod probe;
pub mod readiness;
pub mod removal;
pub mod roles;
pub mod service;
pub mod standing;
pub mod supervise;
pub mod tally;
pub mod thread;
mod watching;
