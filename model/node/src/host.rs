//! Hosts: everything that nodeup makes of a machine, as plain data. The engine plans the way from what a machine is to
//! this; nothing on a machine is ever removed, since machines change by being replaced.

mod certificate;
mod desired;
mod directory;
mod download;
mod error;
mod hosts_block;
mod keyset_file;
mod link;
mod module;
mod mount;
mod packages;
mod propagation;
mod resource;
mod sysctl;
mod tools;
mod unit;

pub use certificate::{Certificate, CertificateStorage, Standing};
pub use desired::{desired, signing_duration};
pub use directory::Directory;
pub use download::{Download, Place};
pub use error::Error;
pub use hosts_block::HostsBlock;
pub use keyset_file::{KeysetFile, KeysetPart, keyset_part};
pub use link::Link;
pub use module::KernelModule;
pub use mount::Mount;
pub use packages::Packages;
pub use propagation::Propagation;
pub use resource::{HostResource, Thing};
pub use sysctl::Sysctl;
pub use tools::Tools;
pub use unit::Unit;
