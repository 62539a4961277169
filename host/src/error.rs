//! What can go wrong between an agent and its machine.

use crate::{DeviceContent, Formattable};
use std::io;
use std::path::{Path, PathBuf};

/// Why something was not read or not changed. Paths have the root; disks are named as operators know them.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields are what the text names")]
pub enum Error {
    /// The kernel refused to read or change a file, folder, link, mount or device.
    #[error("could not {doing} {}", path.display())]
    File {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The agent stops: nothing more is changed.
    #[error("stopped before this was done")]
    Stopped,
    /// A program did not start.
    #[error("could not run {program}: is it installed?")]
    Start { program: String, source: io::Error },
    /// The device belongs to another disk than before.
    #[error("{} is {disk} no longer", device.display())]
    OtherDisk { disk: String, device: PathBuf },
    /// A disk does not hold what it held when it was decided to make a file system on it.
    #[error("{disk} was {expected:?} and is {found:?} now: no file system is made on it")]
    Changed {
        disk: String,
        expected: Formattable,
        found: DeviceContent,
    },
    /// mkfs, fsck or resize2fs failed.
    #[error("could not {doing} {disk} ({}): {program}: {complaint}", device.display())]
    FileSystem {
        doing: &'static str,
        disk: String,
        device: PathBuf,
        program: String,
        complaint: String,
    },
}

impl Error {
    /// An error of the kernel's, which says neither what was to be done nor with which file.
    pub(crate) fn of_file(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::File {
            doing,
            path: path.to_owned(),
            source,
        }
    }
}
