//! AWS, and nothing but AWS: clients, the sweep that observes a cluster, the verbs of each kind, facts,
//! and the state store. The only crate that names an AWS SDK type.

mod attempts;
#[cfg(feature = "cloud")]
mod balancer;
mod causes;
mod client;
#[cfg(feature = "cloud")]
mod console;
#[cfg(feature = "route53")]
pub mod dns;
#[cfg(feature = "cloud")]
mod engine;
#[cfg(feature = "cloud")]
mod facts;
#[cfg(any(feature = "store", feature = "identity"))]
mod failure;
pub mod fence;
#[cfg(feature = "cloud")]
pub mod fleet;
#[cfg(feature = "identity")]
mod identity;
#[cfg(feature = "cloud")]
mod kinds;
#[cfg(feature = "machine")]
pub mod machine;
#[cfg(feature = "cloud")]
mod names;
#[cfg(feature = "cloud")]
mod observe;
#[cfg(test)]
#[cfg(feature = "store")]
mod s3_test;
#[cfg(feature = "cloud")]
mod scope;
#[cfg(feature = "store")]
pub mod store;
#[cfg(feature = "cloud")]
mod world;

pub use attempts::Again;
#[cfg(feature = "cloud")]
pub use balancer::balancer_dns_name;
pub use client::{Access, Clients, Keys};
#[cfg(feature = "cloud")]
pub use console::{Console, console};
#[cfg(feature = "cloud")]
pub use facts::{FactsWanted, collect_facts};
#[cfg(feature = "identity")]
pub use identity::{Identity, Imds, caller};
#[cfg(feature = "cloud")]
pub use scope::{AssetSource, Scope};
#[cfg(feature = "cloud")]
pub use world::AwsWorld;
