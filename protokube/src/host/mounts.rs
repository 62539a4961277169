//! Mounting, and what is mounted.

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::CStr;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};

/// A way to mount file systems.
pub trait Mounts: Debug + Send + Sync {
    /// The device that is mounted at a folder, if one is.
    fn device_at(&self, folder: &Path) -> io::Result<Option<PathBuf>>;

    /// Mounts a device with an ext4 file system at a folder.
    fn mount(&self, device: &Path, folder: &Path) -> io::Result<()>;

    /// Takes what is mounted at a folder from there, also while it is in use.
    fn unmount(&self, folder: &Path) -> io::Result<()>;

    /// True if nobody may write to what is mounted at a folder.
    fn read_only(&self, folder: &Path) -> io::Result<bool>;
}

/// A file system with errors is not written to: the kernel goes on with one otherwise (ext4: `errors=continue`). The reserve is for
/// who has `CAP_SYS_RESOURCE`, which containers have not, and no longer for their root (ext4: `resuid`, 65534 is nobody).
const OPTIONS: &CStr = c"errors=remount-ro,resuid=65534";

/// The kernel's.
#[derive(Clone, Copy, Debug)]
pub struct KernelMounts;

impl Mounts for KernelMounts {
    fn device_at(&self, folder: &Path) -> io::Result<Option<PathBuf>> {
        let table = std::fs::read_to_string("/proc/self/mountinfo")?;
        Ok(device_at(&table, folder))
    }

    fn mount(&self, device: &Path, folder: &Path) -> io::Result<()> {
        // Data and a manifest are all that is on it.
        let flags =
            MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::NOATIME;
        mount(device, folder, "ext4", flags, OPTIONS)?;
        Ok(())
    }

    fn unmount(&self, folder: &Path) -> io::Result<()> {
        Ok(unmount(folder, UnmountFlags::DETACH)?)
    }

    fn read_only(&self, folder: &Path) -> io::Result<bool> {
        Ok(statvfs(folder)?.f_flag.contains(StatVfsMountFlags::RDONLY))
    }
}

/// The device on top at a folder, by a table of mounts in the kernel's form: the fifth field is the folder, and the device is the second
/// after the dash.
fn device_at(table: &str, folder: &Path) -> Option<PathBuf> {
    let line = |line: &str| {
        let (front, back) = line.split_once(" - ")?;
        let at = front.split(' ').nth(4)?;
        let device = back.split(' ').nth(1)?;
        (Path::new(&unescaped(at)) == folder).then(|| PathBuf::from(unescaped(device)))
    };
    table.lines().filter_map(line).next_back()
}

/// Blanks and backslashes are written as `\040` and the like.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part
            .get(..3)
            .and_then(|code| u8::from_str_radix(code, 8).ok());
        match (code, part.get(3..)) {
            (Some(code), Some(rest)) => {
                out.push(char::from(code));
                out.push_str(rest);
            }
            _ => {
                out.push('\\');
                out.push_str(part);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_on_top_is_found_in_the_kernels_table() {
        let table = "22 1 259:1 / / rw shared:1 - ext4 /dev/nvme0n1p1 rw\n\
            90 22 0:9 / /mnt/a\\040b rw,nosuid - ext4 /dev/nvme1n1 rw\n\
            91 90 0:9 / /mnt/a\\040b rw shared:7 master:1 - ext4 /dev/nvme2n1 rw\n";
        let at = |folder: &str| device_at(table, Path::new(folder));
        assert_eq!(at("/mnt/a b"), Some("/dev/nvme2n1".into()));
        assert_eq!(at("/mnt"), None);
        assert_eq!(at("/"), Some("/dev/nvme0n1p1".into()));
    }
}
