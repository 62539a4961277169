//! protokube brings up and keeps up the control plane of one machine: volumes, etcd, manifests, names, the bootstrap endpoint,
//! addons. Each is a role of its own.

pub mod api;
pub mod arguments;
pub mod daemon;
pub mod ec2;
pub mod etcd;
pub mod host;
pub mod keysets;
pub mod manifests;
pub mod names;
pub mod probe;
pub mod stage;
pub mod supervise;
pub mod volumes;
