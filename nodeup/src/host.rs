//! What nodeup does to the machine: it looks, plans, and changes what differs. Nothing else of nodeup changes anything
//! outside its own folder. How files, mounts and disks are touched is the crate `host`'s.

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

pub use context::{Applied, Context};
pub use local::LocalHost;
pub use run::{apply, forget_starts, plan};
pub use signer::Signer;
