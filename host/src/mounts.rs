//! Lists, creates and removes mounts of the host.

use crate::{DiskSpace, Error, Host};
use std::path::{Path, PathBuf};
use sys_mount::MountFlags;

/// A mount, from `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountEntry {
    /// Mount point, including the root folder.
    pub path: PathBuf,
    /// Device, or what the file system type shows in its place.
    pub source: PathBuf,
    /// Mounts below it propagate to other mount namespaces.
    pub shared: bool,
    /// The mount or the file system is read-only, because it was mounted so or because the kernel found errors.
    pub read_only: bool,
}

impl Host {
    /// All mounts, oldest first.
    pub fn mounts(&self) -> Result<Vec<MountEntry>, Error> {
        let table = Path::new("/proc/self/mountinfo");
        self.system.mounts().map_err(Error::of_file("read", table))
    }

    /// The mount at a folder; the newest if there are several.
    pub fn mounted_at(&self, folder: &str) -> Result<Option<MountEntry>, Error> {
        let folder = self.path_below_root(folder);
        let mut mounts = self.mounts()?.into_iter();
        Ok(mounts.rfind(|mount| mount.path == folder))
    }

    /// The mount that a path is on; the newest if several have the same mount point.
    pub fn mount_above(&self, path: &str) -> Result<Option<MountEntry>, Error> {
        let path = self.path_below_root(path);
        let mounts = self.mounts()?.into_iter();
        let above = mounts.filter(|mount| path.starts_with(&mount.path));
        Ok(above.max_by_key(|mount| mount.path.components().count()))
    }

    /// Free space of the file system that a folder is on, in bytes, for processes without privileges.
    pub fn free_bytes(&self, folder: &str) -> Result<u64, Error> {
        Ok(self.disk_space(folder)?.free)
    }

    /// Space of the file system that a folder is on.
    pub fn disk_space(&self, folder: &str) -> Result<DiskSpace, Error> {
        let folder = self.path_below_root(folder);
        let space = self.system.disk_space(&folder);
        space.map_err(Error::of_file("read", &folder))
    }

    /// Mounts a device at a folder, which is created if missing. `options` are those of mount(8), separated by commas.
    pub fn mount_device(
        &self,
        device: &Path,
        folder: &str,
        filesystem: &str,
        options: &str,
    ) -> Result<(), Error> {
        self.make_folder(folder, 0o755)?;
        self.may_change()?;
        let folder = self.path_below_root(folder);
        let mounted = self.system.mount(device, &folder, filesystem, options);
        mounted.map_err(Error::of_file("mount", device))
    }

    /// Detaches the mount at a folder. Processes that use it keep it until they end.
    pub fn unmount_folder(&self, folder: &str) -> Result<(), Error> {
        self.may_change()?;
        let folder = self.path_below_root(folder);
        let unmounted = self.system.unmount(&folder);
        unmounted.map_err(Error::of_file("unmount", &folder))
    }

    /// Makes a mount shared, as systemd does with `/` at boot, so that mounts below it propagate to other mount namespaces.
    pub fn share_mount(&self, mount_point: &Path) -> Result<(), Error> {
        self.may_change()?;
        let shared = self.system.share_mount(mount_point);
        shared.map_err(Error::of_file("share the mount", mount_point))
    }
}

/// Parses a table in the format of proc_pid_mountinfo(5): the fifth field is the folder, the sixth the options of the mount;
/// after the dash follow type, source and the options of the file system. Returned paths lie below `root`.
pub(crate) fn parse_mounts(table: &str, root: &Path) -> Vec<MountEntry> {
    let below = |path: String| match path.strip_prefix('/') {
        Some(path) => root.join(path),
        None => path.into(),
    };
    let mount = |line: &str| {
        let (front, back) = line.split_once(" - ")?;
        let front: Vec<&str> = front.split(' ').collect();
        let mut back = back.split(' ').skip(1);
        let (path, source) = (front.get(4)?, back.next()?);
        let options = front.get(5).into_iter().copied().chain(back);
        Some(MountEntry {
            path: below(unescape_octal(path)),
            source: below(unescape_octal(source)),
            shared: front
                .iter()
                .skip(6)
                .any(|field| field.starts_with("shared:")),
            read_only: options
                .flat_map(|options| options.split(','))
                .any(|option| matches!(option, "ro" | EMERGENCY)),
        })
    };
    table.lines().filter_map(mount).collect()
}

/// Option that ext4 since Linux 6.15 shows in place of `ro` after an error (`fs/ext4/super.c`,
/// `_ext4_show_options`).
const EMERGENCY: &str = "emergency_ro";

/// Decodes `\040` and similar octal escapes of blanks and backslashes.
fn unescape_octal(text: &str) -> String {
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

/// Splits options of mount(8) into flags of mount(2) and data for the file system. Options that matter only in fstab are
/// dropped.
pub(crate) fn flags_and_data(options: &str) -> (MountFlags, String) {
    let mut flags = MountFlags::empty();
    let mut data = Vec::new();
    for option in options.split(',').map(str::trim) {
        match option {
            "" | "auto" | "defaults" | "_netdev" | "noauto" | "nofail" | "rw" => {}
            "dirsync" => flags |= MountFlags::DIRSYNC,
            "noatime" => flags |= MountFlags::NOATIME,
            "nodev" => flags |= MountFlags::NODEV,
            "nodiratime" => flags |= MountFlags::NODIRATIME,
            "noexec" => flags |= MountFlags::NOEXEC,
            "nosuid" => flags |= MountFlags::NOSUID,
            "relatime" => flags |= MountFlags::RELATIME,
            "ro" => flags |= MountFlags::RDONLY,
            "strictatime" => flags |= MountFlags::STRICTATIME,
            "sync" => flags |= MountFlags::SYNCHRONOUS,
            option if option.starts_with("x-") => {}
            option => data.push(option),
        }
    }
    (flags, data.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_on_top_is_found_in_the_kernels_table() {
        let table = "22 1 259:1 / / rw shared:1 - ext4 /dev/nvme0n1p1 rw\n\
            90 22 0:9 / /mnt/a\\040b rw,nosuid - ext4 /dev/nvme1n1 rw\n\
            91 90 0:9 / /mnt/a\\040b rw shared:7 master:1 - ext4 /dev/nvme2n1 rw\n";
        let mounts = parse_mounts(table, Path::new("/"));
        let at = |folder: &str| {
            let mut there = mounts.iter().rev();
            let there = there.find(|mount| mount.path == Path::new(folder));
            there.map(|mount| (mount.source.to_str().unwrap(), mount.shared))
        };
        assert_eq!(at("/mnt/a b"), Some(("/dev/nvme2n1", true)));
        assert_eq!(at("/mnt"), None);
        assert_eq!(at("/"), Some(("/dev/nvme0n1p1", true)));
    }

    #[test]
    fn what_nobody_may_write_to_is_seen_by_the_options_of_mount_and_file_system() {
        for (options, read_only) in [
            ("rw,nodev - ext4 /dev/a rw,errors=remount-ro", false),
            ("ro,nodev - ext4 /dev/a rw", true),
            ("rw shared:1 - ext4 /dev/a ro,errors=remount-ro", true),
            ("rw - ext4 /dev/a rw,emergency_ro", true),
            ("rw - tmpfs tmpfs rw", false),
        ] {
            let mounts = parse_mounts(&format!("90 22 0:9 / /mnt {options}"), Path::new("/"));
            let seen: Vec<bool> = mounts.iter().map(|mount| mount.read_only).collect();
            assert_eq!(seen, [read_only], "{options}");
        }
    }

    #[test]
    fn options_of_mount_are_flags_and_the_rest_is_the_file_systems() {
        let (flags, data) =
            flags_and_data("defaults,noatime,nofail,x-systemd.growfs,discard,ro,data=ordered");
        assert_eq!(flags, MountFlags::NOATIME | MountFlags::RDONLY);
        assert_eq!(data, "discard,data=ordered");
    }
}
