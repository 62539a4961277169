//! Which device a volume has. NVMe disks are numbered anew at each boot, so that a volume is known by its id or by the name
//! under which it was attached, never by its number.

use crate::files::absent_as_none;
use crate::{Error, Host};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Where the kernel shows disks.
const DISKS: &str = "/sys/block";

impl Host {
    /// The device of an EBS volume by its id, once the kernel shows it: only where disks are NVMe. udev's links may come later
    /// than the disk itself.
    pub fn device_of_volume(&self, volume: &str) -> Result<Option<PathBuf>, Error> {
        let serial = volume.replace('-', "");
        let by_id = format!("/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_{serial}");
        if let Some(device) = self.resolve_device(&by_id)? {
            return Ok(Some(device));
        }
        for disk in self.disks()? {
            // A disk whose serial number cannot be read is not the one: others come and go.
            let about = self.at(&format!("{DISKS}/{disk}/device/serial"));
            if fs::read_to_string(about).is_ok_and(|text| text.trim() == serial) {
                return self.resolve_device(&format!("/dev/{disk}"));
            }
        }
        Ok(None)
    }

    /// The device of what AWS attached under a name (`/dev/xvdf`, `/dev/sdf`): the NVMe disk that says so, else what has the
    /// name itself. A name of an NVMe disk is its own.
    pub fn device_attached_as(&self, name: &str) -> Result<Option<PathBuf>, Error> {
        if !name.starts_with("/dev/nvme") {
            for disk in self.disks()? {
                let device = self.at(&format!("/dev/{disk}"));
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
        let device = self.at(name);
        Ok(device.exists().then_some(device))
    }

    /// The device that a name or link leads to; `None` if there is none.
    pub fn resolve_device(&self, name: &str) -> Result<Option<PathBuf>, Error> {
        canonical(&self.at(name))
    }

    /// What tells a disk from any other in this boot: its serial number, of EBS the volume's id; else the number that the
    /// kernel gave this very attachment (Documentation/ABI/stable/sysfs-block, `diskseq`). `None`: it has neither.
    pub(crate) fn identify_disk(&self, device: &Path) -> Result<Option<String>, Error> {
        let device = canonical(device)?;
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

    /// Names of the disks that the kernel shows, in order.
    fn disks(&self) -> Result<Vec<String>, Error> {
        let folder = self.at(DISKS);
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

/// True if two paths lead to one device: devices have several names.
pub fn is_same_device(one: &Path, other: &Path) -> Result<bool, Error> {
    if one == other {
        return Ok(true);
    }
    let resolved = canonical(one)?;
    Ok(resolved.is_some() && resolved == canonical(other)?)
}

fn canonical(path: &Path) -> Result<Option<PathBuf>, Error> {
    absent_as_none(fs::canonicalize(path)).map_err(Error::of_file("read", path))
}

/// AWS takes `/dev/sdf` and `/dev/xvdf`, and tells EBS' disks of it with `/dev/` or without.
fn bare_name(name: &str) -> &str {
    let bare = name.trim_start_matches("/dev/");
    let rest = bare.strip_prefix("xvd").or_else(|| bare.strip_prefix("sd"));
    rest.unwrap_or(bare)
}
