//! The spec as users write it: read with places for every finding, described for users and editors, validated, created by
//! `kctl create cluster`, and expanded into the full spec. Nothing behind expansion depends on this crate.

pub mod api;
pub mod bundle;
pub mod catalog;
pub mod cidr;
pub mod completed;
pub mod create;
pub mod defaults;
pub mod etcd;
pub mod expand;
pub mod field;
pub mod network_change;
pub mod not_yet;
mod quantity;
pub mod read;
pub mod schema;
pub mod upgrade;
pub mod validate;
mod warm_pool;
