//! The instance that nodeup and protokube run on. All access to files, links, mounts, block devices and programs goes through
//! this crate. Code that can destroy data exists once: the blank check in `content`, mkfs in `format`, fsck and resize2fs in
//! `ext4`. The crate knows neither the AWS API nor Kubernetes.

mod content;
mod devices;
mod error;
mod ext4;
mod files;
mod first_look;
mod folders;
mod format;
mod links;
mod mounts;
mod owners;
mod partial;
mod programs;
mod rewrite;
mod staged;
mod system;

pub use content::DeviceContent;
pub use devices::is_same_device;
pub use error::Error;
pub use ext4::is_outgrown;
pub use files::{is_staged_name, read_text_file, write_secret_file};
pub use first_look::MountedForLook;
pub use format::{Formattable, NewFileSystem};
pub use mounts::MountEntry;
pub use partial::{FileLock, PartialFile, open_file};
pub use staged::StagedFile;
pub use system::{DiskSpace, LocalSystem, Output, System};

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The instance. Paths are absolute and lie below a root folder, which is `/` except in tests. Devices are given and returned
/// as paths that can be opened, including the root folder.
#[derive(Clone)]
pub struct Host {
    root: PathBuf,
    system: Arc<dyn System>,
    stop: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

impl Host {
    /// An instance with its files below `root`; `system` provides programs and mounts.
    pub fn new(root: impl Into<PathBuf>, system: Arc<dyn System>) -> Self {
        Self {
            root: root.into(),
            system,
            stop: Arc::new(|| false),
        }
    }

    /// The same instance with a stop condition, which is evaluated before every change: true forbids it.
    #[must_use]
    pub fn with_stop(self, stop: Arc<dyn Fn() -> bool + Send + Sync>) -> Self {
        Self { stop, ..self }
    }

    /// The folder below which all files of the instance lie.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path below the root folder of an absolute path on the instance.
    pub fn path_below_root(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// True once the stop condition forbids changes.
    pub fn is_stopped(&self) -> bool {
        (self.stop)()
    }

    /// Fails with [`Error::Stopped`] once changes are forbidden. Called before every change.
    pub fn may_change(&self) -> Result<(), Error> {
        if self.is_stopped() {
            return Err(Error::Stopped);
        }
        Ok(())
    }

    /// Runs a program and waits for its end. Fails only if the program cannot be started; the exit code is in the result.
    pub fn run_program(&self, program: &str, arguments: &[&str]) -> Result<Output, Error> {
        let ran = self.system.run(program, arguments);
        ran.map_err(|source| Error::Start {
            program: program.to_owned(),
            source,
        })
    }
}
