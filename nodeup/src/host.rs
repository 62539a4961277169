//! What nodeup does to the machine: it looks, plans, and changes what differs. Nothing else of nodeup changes anything
//! outside its own folder. The machine is a root folder and a [`System`], so that both can be others in tests.

mod archive;
mod certificate;
mod context;
mod disk;
mod download;
mod file;
mod hosts_block;
mod judge;
mod kernel;
mod keyset_file;
mod local;
mod owners;
mod packages;
mod run;
mod signer;
mod system;
mod tools;
mod units;
mod volume;

pub use context::{Applied, Context};
pub use local::LocalHost;
pub use run::{apply, forget_starts, plan};
pub use signer::Signer;
pub use system::{Answer, Machine, MountRequest, System};
