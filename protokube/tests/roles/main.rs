//! protokube's roles on machines made of folders: volumes and etcd, manifests, names.
#![cfg(test)]

mod alarms;
mod calls;
mod disks;
mod etcd;
mod gates;
mod kernel;
mod machine;
mod names;
mod standing;
#[path = "../support/store.rs"]
mod store;
