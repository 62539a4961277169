//! What nodeup does to the machine: it looks, plans, and changes what differs. Nothing else of nodeup changes anything
//! outside its own folder. The machine is a root folder and a [`System`], so that both can be others in tests.

mod context;
mod local;
mod run;
mod signer;
mod system;

pub use context::{Applied, Context};
pub use local::LocalHost;
pub use run::{apply, certificates_due, plan};
pub use signer::Signer;
pub use system::{Answer, Machine, MountRequest, System};
