//! Hosts: what an EC2 instance is in the lab. Debian with systemd as first process, in namespaces and cgroups of its own,
//! on a disk of its own, configured by cloud-init from the metadata service; or the same in a virtual machine.
//!
//! All functions block; what they make is in the ledger before it exists.

mod boot;
mod console;
mod detach;
mod exec;
mod image;
mod images;
mod inotify;
mod layer;
mod machine;
mod power;
mod recipe;
mod requirements;
mod slow_disk;
mod state;
mod volume;

pub use boot::boot_host;
pub use console::{follow_console, read_console};
pub use detach::{DetachResult, detach_volume};
pub use exec::{exec_in_host, exec_output};
pub use image::{Image, cache_folder};
pub use images::Images;
pub use inotify::ensure_left as ensure_inotify_left;
pub use machine::MachineImages;
pub use power::{kill9, power_off, reboot_host, start_host, stop_host, terminate_host};
pub use recipe::{PANICS, Release};
pub use requirements::ready as requirements_ready;
pub use slow_disk::limit_writes;
pub use state::{Host, HostSpec, HostState, list_hosts};
pub use volume::{HostVolume, VolumeSpec, attach_volume, attachment_delay, delay_attachments};
