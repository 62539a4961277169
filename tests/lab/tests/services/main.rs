//! What the lab's services promise, against real clients, on loopback and (as root) in network namespaces.

mod aws;
mod dns;
mod dns_laws;
mod dns_wire;
mod files;
mod front;
mod metadata;
mod namespaces;
mod registry;
mod support;
