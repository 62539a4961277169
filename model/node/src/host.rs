//! The desired state of an instance as plain data, which the engine compares with the instance. Nothing on an instance is ever
//! removed, because instances change by being replaced.

mod certificate;
mod desired;
mod directory;
mod download;
mod error;
mod hosts_block;
mod image;
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

pub use certificate::{Certificate, CertificateState, CertificateStorage};
pub use desired::{check_paths, desired_resources, signing_duration};
pub use directory::Directory;
pub use download::{Download, InstallTarget};
pub use error::Error;
pub use hosts_block::HostsBlock;
pub use image::Image;
pub use keyset_file::{KeysetFile, KeysetPart, keyset_part};
pub use link::Link;
pub use module::KernelModule;
pub use mount::Mount;
pub use packages::Packages;
pub use propagation::Propagation;
pub use resource::{HostObject, HostResource};
pub use sysctl::Sysctl;
pub use tools::Tools;
pub use unit::Unit;
