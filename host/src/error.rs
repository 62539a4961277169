//! Errors of reading and changing the instance.

use crate::{DeviceContent, Formattable};
use std::io;
use std::path::{Path, PathBuf};

/// Why a read or change failed. Paths include the root folder; disks have the names that operators use.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused an operation on a file, folder, link, mount or device.
    #[error("could not {doing} {}", path.display())]
    File {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The agent is stopping and makes no more changes.
    #[error("the agent was stopped before this change")]
    Stopped,
    /// A program could not be started.
    #[error("could not run {program}: is it installed?")]
    Start { program: String, source: io::Error },
    /// The device now belongs to a different disk.
    #[error("{} does not belong to {disk} any more", device.display())]
    OtherDisk { disk: String, device: PathBuf },
    /// The content of a disk changed between the decision to make a file system on it and mkfs.
    #[error("no file system is made on {disk}: it was {expected:?} and is {found:?} now")]
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
    /// Adds the operation and the path to an error of the kernel, which names neither.
    pub(crate) fn of_file(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::File {
            doing,
            path: path.to_owned(),
            source,
        }
    }
}
