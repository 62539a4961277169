//! Looks at an ext4 file system without changing a byte of its device.

use crate::ext4::has_pending_journal;
use crate::{Error, Host};
use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Without `noload`, ext4 replays the journal also if it is mounted read-only (kernel: `Documentation/admin-guide/ext4.rst`).
const OPTIONS: &str = "ro,noload,nodev,nosuid,noexec";

/// A file system that is mounted for a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountedForLook {
    /// True if the journal has changes that are not seen: files may be older than they are, or missing.
    pub is_outdated: bool,
}

impl Host {
    /// Calls `look` while the ext4 file system of a device is mounted at a folder, and nothing can write to the device: also with
    /// `ro,noload`, ext4 removes files that were deleted while they were open, unless the device is read-only (kernel:
    /// `ext4_orphan_cleanup` in `fs/ext4/orphan.c`). `disk` is the name for messages. Fails if the device is in use.
    pub fn look_at_ext4<T>(
        &self,
        disk: &str,
        device: &Path,
        folder: &str,
        look: impl FnOnce(MountedForLook) -> T,
    ) -> Result<T, Error> {
        // Held until the end: another look would make the device writable in the middle of this one. udev probes no locked device
        // (systemd: "Locking Block Device Access").
        let locked = File::open(device).and_then(|device| {
            flock(&device, FlockOperation::NonBlockingLockExclusive)?;
            Ok(device)
        });
        let _locked = locked.map_err(Error::of_file("lock for a look without changes", device))?;
        // What a killed agent left behind.
        self.end_look(folder)?;
        let exclusive = i32::try_from(OFlags::EXCL.bits()).unwrap_or_default();
        let mut options = OpenOptions::new();
        let free = options.read(true).custom_flags(exclusive).open(device);
        drop(free.map_err(Error::of_file("open for a look without changes", device))?);
        let is_outdated = has_pending_journal(device).unwrap_or(true);
        self.set_device_mode(disk, device, "--setro")?;
        let mounted = self.mount_device(device, folder, "ext4", OPTIONS);
        let looked = mounted.map(|()| look(MountedForLook { is_outdated }));
        let ended = self.end_look(folder);
        self.set_device_mode(disk, device, "--setrw")?;
        ended?;
        looked
    }

    fn end_look(&self, folder: &str) -> Result<(), Error> {
        match self.mounted_at(folder)? {
            Some(_) => self.unmount_folder(folder),
            None => Ok(()),
        }
    }

    fn set_device_mode(&self, disk: &str, device: &Path, option: &str) -> Result<(), Error> {
        let path = device.display().to_string();
        let output = self.run_program("blockdev", &[option, &path])?;
        if output.is_success() {
            return Ok(());
        }
        Err(Error::FileSystem {
            doing: "look without changes at",
            disk: disk.to_owned(),
            device: device.to_owned(),
            program: "blockdev".to_owned(),
            complaint: output.error_output().to_owned(),
        })
    }
}
