//! AWS, and nothing but AWS: clients, the sweep that observes a cluster, the verbs of each kind, facts,
//! and the state store. The only crate that names an AWS SDK type.

mod client;
mod failure;

#[cfg(feature = "identity")]
mod identity;
#[cfg(feature = "cloud")]
mod scope;
#[cfg(feature = "store")]
pub mod store;

pub use client::Clients;
#[cfg(feature = "identity")]
pub use identity::{Identity, Imds, caller};
#[cfg(feature = "cloud")]
pub use scope::{AssetSource, Scope};
