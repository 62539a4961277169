//! The machine that nodeup and protokube run on: files, links, mounts, block devices and programs are touched through this
//! crate only. Code that can destroy data exists once: the blank check in `content`, mkfs in `format`, fsck and
//! resize2fs in `ext4`. The crate knows neither AWS' API nor Kubernetes.

mod content;
mod devices;
mod error;
mod ext4;
mod files;
mod format;
mod links;
mod mounts;
mod owners;
mod programs;
mod rewrite;
mod staged;
mod system;

pub use content::DeviceContent;
pub use devices::is_same_device;
pub use error::Error;
pub use ext4::is_outgrown;
pub use files::{is_staged_name, read_text_file, write_secret_file};
pub use format::{Formattable, NewFileSystem};
pub use mounts::Mounted;
pub use staged::Staged;
pub use system::{LocalSystem, Output, System};

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A machine. Its paths are absolute and lie below a root folder, which is `/` except in tests; devices are given and
/// returned as paths that can be opened, with the root.
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
    /// The machine whose files are below `root`, with its programs and mounts.
    pub fn new(root: impl Into<PathBuf>, system: Arc<dyn System>) -> Self {
        Self {
            root: root.into(),
            system,
            stop: Arc::new(|| false),
        }
    }

    /// The same machine; `stop` is asked before every single change, and answers true once nothing more may be changed.
    #[must_use]
    pub fn with_stop(self, stop: Arc<dyn Fn() -> bool + Send + Sync>) -> Self {
        Self { stop, ..self }
    }

    /// The root folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where a path of the machine lies.
    pub fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// True once nothing more may be changed.
    pub fn is_stopped(&self) -> bool {
        (self.stop)()
    }

    /// Asked before every change. Fails once nothing more may be changed.
    pub fn may_change(&self) -> Result<(), Error> {
        if self.is_stopped() {
            return Err(Error::Stopped);
        }
        Ok(())
    }

    /// Runs a program to its end, whatever its exit code. Fails only if the program cannot be started.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<Output, Error> {
        let ran = self.system.run(program, arguments);
        ran.map_err(|source| Error::Start {
            program: program.to_owned(),
            source,
        })
    }
}
