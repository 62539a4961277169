//! Virtual machines: hosts with a processor, a kernel, a clock and disks of their own, which QEMU emulates. docs/lab/machines.md says
//! what is real in them.

mod agent;
mod disks;
mod image;
mod json_socket;
mod power;
mod qemu;

pub use image::{MachineImage, MachineImages};

pub(super) use agent::{answers, run_program};
pub(super) use disks::{copy_root_disk, plug_volume, unplug_volume};
pub(super) use power::press_button;
pub(super) use qemu::{PROCESS_NAME, qemu_command};
