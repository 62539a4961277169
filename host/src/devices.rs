//! Finds the block device of a volume. The kernel numbers NVMe disks anew at each boot, so a volume is identified by its id or
//! by the device name of its attachment, never by the number.

use crate::files::absent_as_none;
use crate::{Error, Host};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Folder in which the kernel lists disks.
const DISKS: &str = "/sys/block";

impl Host {
    /// The device of an EBS volume id (`vol-...`); `None` until the kernel shows it. Works for NVMe disks only. Also reads serial
    /// numbers from sysfs, because udev may create its links after the disk appears.
    pub fn device_of_volume(&self, volume: &str) -> Result<Option<PathBuf>, Error> {
        let serial = volume.replace('-', "");
        let by_id = format!("/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_{serial}");
        if let Some(device) = self.resolve_device(&by_id)? {
            return Ok(Some(device));
        }
        for disk in self.list_disks()? {
            // A disk without a readable serial number is not the one; it may be about to disappear.
            let about = self.path_below_root(&format!("{DISKS}/{disk}/device/serial"));
            if fs::read_to_string(about).is_ok_and(|text| text.trim() == serial) {
                return self.resolve_device(&format!("/dev/{disk}"));
            }
        }
        Ok(None)
    }

    /// The device that AWS attached as `name` (`/dev/xvdf`, `/dev/sdf`): the NVMe disk that reports this name, otherwise the device
    /// file of that name. A name `/dev/nvme...` always means the device file.
    pub fn device_attached_as(&self, name: &str) -> Result<Option<PathBuf>, Error> {
        if !name.starts_with("/dev/nvme") {
            for disk in self.list_disks()? {
                let device = self.path_below_root(&format!("/dev/{disk}"));
                if !disk.starts_with("nvme") || !device.exists() {
                    continue;
                }
                let given = self.system.attached_as(&device);
                let given = given.map_err(Error::of_file("ask", &device))?;
                if given.is_some_and(|given| bare_name(&given) == bare_name(name)) {
                    return Ok(Some(device));
                }
            }
        }
        let device = self.path_below_root(name);
        Ok(device.exists().then_some(device))
    }

    /// The device that a device name or link leads to; `None` if it does not exist.
    pub fn resolve_device(&self, name: &str) -> Result<Option<PathBuf>, Error> {
        canonicalize_if_there(&self.path_below_root(name))
    }

    /// Identifies a disk within this boot: its serial number (for EBS, the volume id), otherwise the sequence number that the kernel
    /// gave to this attachment (Documentation/ABI/stable/sysfs-block, `diskseq`). `None` if the disk has neither.
    pub(crate) fn identify_disk(&self, device: &Path) -> Result<Option<String>, Error> {
        let device = canonicalize_if_there(device)?;
        let name = device.as_deref().and_then(Path::file_name);
        let Some(name) = name.and_then(|name| name.to_str()) else {
            return Ok(None);
        };
        for about in ["device/serial", "diskseq"] {
            let text = self.read_lossy(&format!("{DISKS}/{name}/{about}"))?;
            if !text.trim().is_empty() {
                return Ok(Some(format!("{about} {}", text.trim())));
            }
        }
        Ok(None)
    }

    /// Names of all disks that the kernel lists, sorted.
    fn list_disks(&self) -> Result<Vec<String>, Error> {
        let folder = self.path_below_root(DISKS);
        let read = || {
            let entries = absent_as_none(fs::read_dir(&folder))?;
            let entries = entries.into_iter().flatten();
            entries
                .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
                .collect::<io::Result<Vec<String>>>()
        };
        let mut names = read().map_err(Error::of_file("read", &folder))?;
        names.sort();
        Ok(names)
    }
}

/// True if two paths lead to the same device.
pub fn is_same_device(one: &Path, other: &Path) -> Result<bool, Error> {
    if one == other {
        return Ok(true);
    }
    let resolved = canonicalize_if_there(one)?;
    Ok(resolved.is_some() && resolved == canonicalize_if_there(other)?)
}

fn canonicalize_if_there(path: &Path) -> Result<Option<PathBuf>, Error> {
    absent_as_none(fs::canonicalize(path)).map_err(Error::of_file("read", path))
}

/// `f` for `/dev/sdf`, `/dev/xvdf` and `xvdf`: AWS accepts both prefixes, and EBS disks report the name with or without `/dev/`.
fn bare_name(name: &str) -> &str {
    let bare = name.trim_start_matches("/dev/");
    let rest = bare.strip_prefix("xvd").or_else(|| bare.strip_prefix("sd"));
    rest.unwrap_or(bare)
}
