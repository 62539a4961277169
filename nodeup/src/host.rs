//! Observes, plans and changes the instance through the crate `host`. No other part of nodeup changes anything outside nodeup's own
//! folder.

mod archive;
mod certificate;
mod certificate_state;
mod context;
mod download;
mod engine_run;
mod failure;
mod file;
mod hosts_block;
mod image;
mod kernel;
mod keyset_file;
mod local;
mod observed;
mod packages;
mod signer;
mod tools;
mod units;
mod volume;

pub use context::{ApplyResult, HostContext};
pub use engine_run::{apply_desired, forget_starts, plan_changes};
pub use local::LocalHost;
pub use signer::Signer;
