//! The machine: the only module that changes it. All paths are below a root folder, and programs are looked up where the host says,
//! so that tests have machines of their own in temporary folders.

mod commands;
mod disks;
mod files;
mod format;
mod mounts;

pub use disks::Disk;
pub use mounts::{KernelMounts, Mounts};

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where programs are looked up on a machine, whatever the environment of the service says.
const PROGRAMS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A machine.
#[derive(Clone, Debug)]
pub struct Host {
    root: PathBuf,
    programs: String,
    mounts: Arc<dyn Mounts>,
}

impl Host {
    /// The machine this runs on.
    pub fn machine() -> Self {
        Self::at("/", PROGRAMS, Arc::new(KernelMounts))
    }

    /// A machine below a folder, with its programs (`PATH`) and its way to mount.
    pub fn at(
        root: impl Into<PathBuf>,
        programs: impl Into<String>,
        mounts: Arc<dyn Mounts>,
    ) -> Self {
        Self {
            root: root.into(),
            programs: programs.into(),
            mounts,
        }
    }

    /// Where a path of the machine is.
    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

/// Error contexts name the path as the machine has it.
fn shown(path: &Path) -> std::path::Display<'_> {
    path.display()
}
