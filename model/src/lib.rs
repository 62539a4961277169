//! The pure model: what a spec means, which AWS objects and machine configurations follow from it,
//! and the engine that plans the way from what is to what should be. No I/O, no clock, no randomness.

pub mod addons;
pub mod api;
pub mod bootstrap;
pub mod catalog;
pub mod cidr;
pub mod cloud;
pub mod components;
pub mod create;
pub mod engine;
pub mod etcd;
pub mod expand;
pub mod facts;
pub mod full;
pub mod host;
pub mod iam;
pub mod machine_image;
pub mod manifests;
pub mod names;
pub mod node;
pub mod not_yet;
pub mod pki;
pub mod read;
pub mod report;
pub mod secret;
pub mod terminal;
pub mod validate;
pub mod waits;
