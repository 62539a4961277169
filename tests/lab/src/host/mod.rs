//! Hosts: what an EC2 instance is in the lab. Debian with systemd as first process, in namespaces and cgroups of its own,
//! on a disk of its own, configured by cloud-init from the metadata service.
//!
//! All functions block; what they make is in the ledger before it exists.

mod boot;
mod console;
mod detach;
mod exec;
mod image;
mod inotify;
mod layer;
mod power;
mod recipe;
mod requirements;
mod state;
mod volume;

pub use boot::boot;
pub use console::{console, follow};
pub use detach::{Detached, detach_volume};
pub use exec::{exec, exec_output};
pub use image::{Image, cache};
pub use inotify::ensure_left as ensure_inotify_left;
pub use layer::Lower;
pub use power::{kill9, poweroff, reboot, start, terminate};
pub use recipe::PANICS;
pub use requirements::ready as requirements_ready;
pub use state::{Host, HostSpec, State, hosts};
pub use volume::{Attached, VolumeSpec, attach_volume};
