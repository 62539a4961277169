//! What is on a block device. Whoever makes a file system asks here: this is the only blank check.

use crate::{Error, Host};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// How much of a disk must be zero for it to count as blank: whatever partitions or file systems begin with lies there.
const LOOKED_AT: u64 = 1 << 20;

/// `blkid -p` found nothing that it knows (blkid(8), "EXIT STATUS").
const NOTHING_FOUND: i32 = 2;

/// What a device holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceContent {
    /// Nothing: no signature that blkid knows, and its first MiB is zero.
    Blank,
    /// No signature that blkid knows, but not nothing.
    Unrecognized,
    /// A file system, or whatever else takes a whole device: `ext4`, `swap`, `LVM2_member`.
    FileSystem {
        /// What blkid calls its type.
        kind: String,
    },
    /// Something else: what it is.
    Other(String),
}

impl Host {
    /// What a device holds. A device that cannot be read is an error and not blank.
    pub fn inspect_device(&self, device: &Path) -> Result<DeviceContent, Error> {
        let failed = Error::of_file("read", device);
        // blkid says "nothing found" of what it cannot read, too.
        let file = File::open(device).map_err(&failed)?;
        let probe = self.probe_device(device)?;
        Ok(match probe.code {
            Some(NOTHING_FOUND) if is_zero(file).map_err(failed)? => DeviceContent::Blank,
            Some(NOTHING_FOUND) => DeviceContent::Unrecognized,
            Some(0) => match (probe.value("TYPE"), probe.value("PTTYPE")) {
                (Some(kind), None) => DeviceContent::FileSystem { kind },
                (_, Some(table)) => DeviceContent::Other(format!("a {table} partition table")),
                (None, None) => DeviceContent::Other("something that blkid knows".to_owned()),
            },
            _ => DeviceContent::Other(format!("signatures of several kinds ({})", probe.complaint)),
        })
    }

    /// The UUID of the file system on a device; `None` if blkid finds none.
    pub fn file_system_uuid(&self, device: &Path) -> Result<Option<String>, Error> {
        let probe = self.probe_device(device)?;
        Ok(probe.value("UUID").filter(|_| probe.code == Some(0)))
    }

    fn probe_device(&self, device: &Path) -> Result<Probe, Error> {
        let path = device.display().to_string();
        let output = self.run("blkid", &["-p", "-o", "export", &path])?;
        Ok(Probe {
            code: output.code,
            complaint: output.complaint().to_owned(),
            output: output.stdout,
        })
    }
}

/// What `blkid -p -o export` said: lines of `NAME=value`.
struct Probe {
    code: Option<i32>,
    output: String,
    complaint: String,
}

impl Probe {
    fn value(&self, name: &str) -> Option<String> {
        let mut lines = self.output.lines().filter_map(|line| line.split_once('='));
        lines
            .find(|(key, value)| *key == name && !value.is_empty())
            .map(|(_, value)| value.to_owned())
    }
}

/// True if the beginning of a disk is zero.
fn is_zero(device: File) -> io::Result<bool> {
    let mut begin = Vec::new();
    device.take(LOOKED_AT).read_to_end(&mut begin)?;
    Ok(begin.iter().all(|byte| *byte == 0))
}
