//! protokube runs the control plane of one instance: etcd volumes and members, manifests, DNS names, the bootstrap endpoint, addons.
//! Each is a role with one entry point that runs until an error.

// The modules are public for the tests of this crate only.
#![warn(unreachable_pub)]

pub mod addons;
pub mod admin_kubeconfig;
pub mod api;
pub mod approval;
pub mod arguments;
pub mod backup;
pub mod bootstrap;
pub mod current_waits;
mod daemon;
pub mod ec2;
pub mod etcd;
pub mod etcd_backup;
pub mod health;
pub mod identity;
mod keysets;
pub mod labels;
mod limited_log;
mod lock;
pub mod log;
pub mod manifests;
pub mod names;
pub mod object_names;
pub mod pace;
pub mod pod_ranges;
pub mod probe;
mod readiness;
pub mod removal;
pub mod roles;
pub mod service;
pub mod signed_objects;
pub mod supervise;
pub mod termination;
pub mod thread;
mod uncordon;
mod watch_events;
