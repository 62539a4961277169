//! protokube runs the control plane of one instance: etcd volumes and members, manifests, DNS names, the bootstrap endpoint, addons.
//! Each is a role with one entry point that runs until an error.

// The modules are public for the tests of this crate only.
#![warn(unreachable_pub)]

pub mod addons;
pub mod admin_kubeconfig;
pub mod api;
pub mod approval;
pub mod arguments;
pub mod bootstrap;
mod daemon;
pub mod etcd_backup;
pub mod health;
pub mod identity;
pub mod labels;
mod limited_log;
pub mod manifests;
pub mod names;
pub mod object_names;
pub mod pod_ranges;
mod readiness;
pub mod removal;
pub mod roles;
pub mod service;
pub mod supervise;
pub mod termination;
pub mod thread;
mod uncordon;
mod watch_events;
