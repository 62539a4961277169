//! Observes, plans and changes the instance through the crate `host`. No other part of nodeup changes anything outside nodeup's own
//! folder.

mod archive;
mod certificate;
mod context;
mod download;
mod failure;
mod file;
mod hosts_block;
mod judge;
mod kernel;
mod keyset_file;
mod local;
mod packages;
mod run;
mod signer;
mod tools;
mod units;
mod volume;

pub use context::{ApplyResult, HostContext};
pub use local::LocalHost;
pub use run::{apply_desired, forget_starts, plan_changes};
pub use signer::Signer;
