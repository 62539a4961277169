//! Inspects block devices. Every caller that makes a file system uses this check; no other blank check exists.

use crate::ext4::has_ext4_magic;
use crate::{Error, Host};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes at the start of a disk that must be zero for the disk to count as blank. Every partition table and file system has
/// its first structures there.
const PROBED_BYTES: u64 = 1 << 20;

/// Exit code of `blkid -p` when it recognizes nothing (blkid(8), "EXIT STATUS").
const NOTHING_FOUND: i32 = 2;

/// What blkid and a look at the first MiB say about a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceContent {
    /// No signature that blkid knows, and the first MiB is zero.
    Blank,
    /// No signature that blkid knows, nor that of ext4, but the first MiB is not zero.
    Unrecognized,
    /// A file system, or another format that occupies a whole device: `ext4`, `swap`, `LVM2_member`.
    FileSystem {
        /// The type that blkid reports.
        kind: String,
    },
    /// Anything else, described for a message.
    Other(String),
}

impl Host {
    /// Determines what a device holds. A device that cannot be read is an error, never blank.
    pub fn inspect_device(&self, device: &Path) -> Result<DeviceContent, Error> {
        let failed = Error::of_file("read", device);
        // blkid also exits with "nothing found" for a device that it cannot read.
        let file = File::open(device).map_err(&failed)?;
        let probe = self.probe_device(device)?;
        Ok(match probe.code {
            // blkid of Debian 13 compares checksums, and finds nothing if the superblock is damaged. It is an ext4 file system still, which
            // fsck can repair and nobody may format.
            Some(NOTHING_FOUND) if has_ext4_magic(&file).map_err(&failed)? => {
                DeviceContent::FileSystem {
                    kind: "ext4".to_owned(),
                }
            }
            Some(NOTHING_FOUND) if is_zero(file).map_err(failed)? => DeviceContent::Blank,
            Some(NOTHING_FOUND) => DeviceContent::Unrecognized,
            Some(0) => match (probe.tag_value("TYPE"), probe.tag_value("PTTYPE")) {
                (Some(kind), None) => DeviceContent::FileSystem { kind },
                (Some(kind), Some(table)) => DeviceContent::Other(format!(
                    "both {kind} and a {table} partition table: remove the wrong signature with wipefs"
                )),
                (None, Some(table)) => DeviceContent::Other(format!("a {table} partition table")),
                (None, None) => DeviceContent::Other("a signature without a type".to_owned()),
            },
            _ => DeviceContent::Other(format!("signatures of several kinds ({})", probe.stderr)),
        })
    }

    /// The UUID of the file system on a device; `None` if blkid finds none.
    pub fn file_system_uuid(&self, device: &Path) -> Result<Option<String>, Error> {
        let probe = self.probe_device(device)?;
        Ok(probe.tag_value("UUID").filter(|_| probe.code == Some(0)))
    }

    fn probe_device(&self, device: &Path) -> Result<Probe, Error> {
        let path = device.display().to_string();
        let output = self.run_program("blkid", &["-p", "-o", "export", &path])?;
        Ok(Probe {
            code: output.code,
            stderr: output.error_output().to_owned(),
            output: output.stdout,
        })
    }
}

/// Output of `blkid -p -o export`: lines of `NAME=value`.
struct Probe {
    code: Option<i32>,
    output: String,
    stderr: String,
}

impl Probe {
    fn tag_value(&self, name: &str) -> Option<String> {
        let mut lines = self.output.lines().filter_map(|line| line.split_once('='));
        lines
            .find(|(key, value)| *key == name && !value.is_empty())
            .map(|(_, value)| value.to_owned())
    }
}

/// True if the first [`PROBED_BYTES`] bytes of a disk are zero.
fn is_zero(device: File) -> io::Result<bool> {
    let mut begin = Vec::new();
    device.take(PROBED_BYTES).read_to_end(&mut begin)?;
    Ok(begin.iter().all(|byte| *byte == 0))
}
