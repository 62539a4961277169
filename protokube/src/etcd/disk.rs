//! A member's volume as a disk of this machine: its device, and what is on it.

use anyhow::{Context, bail};
use host::{DeviceContent, Error, Formattable, Host, NewFileSystem, is_staged_name};
use node::etcd::{
    Content, Inside, LOG_HEAD, Log, MARKER, Marker, data_folder, log_folder, log_identity,
};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// etcd insists that nobody else reads its data.
const DATA_MODE: u32 = 0o700;

/// The marker is for everybody to read.
const MARKER_MODE: u32 = 0o644;

/// Data and a manifest are all that is on a volume. A file system with errors is not written to: the kernel goes on with one otherwise
/// (ext4: `errors=continue`). The reserve is for who has `CAP_SYS_RESOURCE`, which containers have not, and no longer for their root
/// (ext4: `resuid`, 65534 is nobody).
const MOUNT_OPTIONS: &str = "nodev,nosuid,noexec,noatime,errors=remount-ro,resuid=65534";

/// A reserve, which only root outside of containers may use: what a member needs to start can be written to a volume that etcd has
/// filled.
const MKFS_OPTIONS: [&str; 3] = ["-q", "-F", "-m1"];

/// A volume that this machine has.
#[derive(Clone, Copy, Debug)]
pub struct Disk<'a> {
    /// `vol-...`.
    pub volume: &'a str,
    /// The device that was asked for when it was attached: `/dev/xvdu`.
    pub asked: &'a str,
    /// `etcd`, `etcd-events`: whose data is on it.
    pub prefix: &'a str,
}

impl Disk<'_> {
    /// Where it is mounted: kOps' place.
    pub fn folder(&self) -> String {
        format!("/mnt/master-{}", self.volume)
    }

    /// etcd's data folder on the disk, as the machine has the path.
    pub fn data(&self) -> String {
        format!("{}/{}", self.folder(), data_folder(self.prefix))
    }

    /// The device, once the kernel shows it: by the volume's id where disks are NVMe, else as it was asked for, now or when it was
    /// mounted before.
    pub fn device(&self, host: &Host) -> Result<Option<PathBuf>, Error> {
        if let Some(device) = host.device_of_volume(self.volume)? {
            return Ok(Some(device));
        }
        let asked = match self.asked {
            "" => host.link_target(&asked_for(self.volume))?,
            asked => Some(asked.into()),
        };
        match asked {
            Some(asked) => host.resolve_device(&asked.to_string_lossy()),
            None => Ok(None),
        }
    }

    /// What the disk holds. One with a file system is checked and mounted to see.
    pub fn look(&self, host: &Host, device: &Path) -> anyhow::Result<Content> {
        self.look_at(host, device).with_context(|| {
            format!(
                "could not see what {} holds ({})",
                self.volume,
                device.display()
            )
        })
    }

    fn look_at(&self, host: &Host, device: &Path) -> anyhow::Result<Content> {
        if !self.is_mounted(host, device)? {
            let content = match host.inspect_device(device)? {
                DeviceContent::Blank => Content::Blank,
                DeviceContent::Unrecognized => Content::Unrecognized,
                DeviceContent::FileSystem { kind } if kind == "ext4" => {
                    Content::FileSystem(Inside::Nothing)
                }
                DeviceContent::FileSystem { kind: what } | DeviceContent::Other(what) => {
                    Content::Other(what)
                }
            };
            if content != Content::FileSystem(Inside::Nothing) {
                return Ok(content);
            }
            if let Some(why) = host.repair_ext4(device)? {
                return Ok(Content::Damaged(why));
            }
            self.mount(host, device)?;
        }
        let mounted = host.mounted_at(&self.folder())?;
        if mounted.is_some_and(|mounted| mounted.read_only) {
            return Ok(Content::Damaged(
                "the kernel came upon them while it was in use, and lets nobody write to it. Restart this machine: it is checked \
                 and mended before it is mounted"
                    .to_owned(),
            ));
        }
        Ok(Content::FileSystem(self.inside(host)?))
    }

    /// Makes a file system on the disk, on which that was seen.
    pub fn format(&self, host: &Host, device: &Path, seen: &Content) -> anyhow::Result<()> {
        if self.is_mounted(host, device)? {
            bail!("{} is mounted: no file system is made on it", self.volume);
        }
        let on = match seen {
            Content::Blank => Formattable::Blank,
            // Its record says that it was blank.
            Content::Unrecognized => Formattable::HalfMade,
            seen => bail!("{} is {seen:?}: no file system is made on it", self.volume),
        };
        let new = NewFileSystem {
            disk: self.volume,
            kind: "ext4",
            options: &MKFS_OPTIONS,
            on,
            record: None,
        };
        Ok(host.make_file_system(device, || self.device(host), &new)?)
    }

    /// Lets the file system fill the disk.
    pub fn grow(&self, host: &Host, device: &Path) -> anyhow::Result<()> {
        let mounted = self.is_mounted(host, device)?;
        Ok(host.grow_ext4(self.volume, device, mounted)?)
    }

    /// True if the disk is mounted in its place; another disk there is an error. What is mounted from a device that is gone is not: a
    /// volume that was detached by force and attached again has another one, since the kernel keeps the first for what uses it.
    pub fn is_mounted(&self, host: &Host, device: &Path) -> anyhow::Result<bool> {
        match host.mounted_at(&self.folder())? {
            None => Ok(false),
            Some(there) if there.source == device => Ok(true),
            Some(there) if !there.source.exists() => Ok(false),
            Some(there) => bail!(
                "{} is mounted at {}, which is for {}: unmount it",
                there.source.display(),
                self.folder(),
                device.display()
            ),
        }
    }

    fn mount(&self, host: &Host, device: &Path) -> anyhow::Result<()> {
        self.unmount(host)?;
        host.mount(device, &self.folder(), "ext4", MOUNT_OPTIONS)?;
        if !self.asked.is_empty() && host.device_of_volume(self.volume)?.is_none() {
            host.make_link(&asked_for(self.volume), self.asked)?;
        }
        Ok(())
    }

    /// Takes the disk out of its place, if it is there. What uses it goes on with it until it ends.
    pub fn unmount(&self, host: &Host) -> anyhow::Result<()> {
        if host.mounted_at(&self.folder())?.is_some() {
            host.unmount(&self.folder())?;
        }
        Ok(())
    }

    /// Writes the marker of the mounted disk.
    pub fn mark(&self, host: &Host, marker: &Marker) -> anyhow::Result<()> {
        let place = format!("{}/{MARKER}", self.folder());
        host.write_changed(&place, &marker.to_json(), MARKER_MODE)?;
        Ok(())
    }

    /// The folder with etcd's data, which the pod must find there.
    pub(super) fn make_data(&self, host: &Host) -> anyhow::Result<()> {
        Ok(host.make_folder(&self.data(), DATA_MODE)?)
    }

    /// What the mounted file system holds. Folders alone are nothing: a machine may have died before it wrote the marker.
    fn inside(&self, host: &Host) -> anyhow::Result<Inside> {
        let place = format!("{}/{MARKER}", self.folder());
        if let Some(text) = host.read_text(&place)? {
            let marker = Marker::read(&place, text.as_bytes())?;
            let log = self.log(host)?;
            return Ok(Inside::Marked { marker, log });
        }
        let names = files(&host.at(&self.folder()), 3)?;
        Ok(if names.is_empty() {
            Inside::Nothing
        } else {
            Inside::Unmarked(names)
        })
    }

    /// etcd's log on the mounted disk. Every file of it says whose it is; the newest is the one that etcd does not remove meanwhile. The
    /// names of new ones are given when their beginning is written.
    pub fn log(&self, host: &Host) -> anyhow::Result<Log> {
        let folder = host.at(&format!("{}/{}", self.folder(), log_folder(self.prefix)));
        let read = || {
            let Some(newest) = newest_log(&folder)? else {
                return Ok(Log::Missing);
            };
            let mut head = Vec::new();
            File::open(&newest)?.take(LOG_HEAD).read_to_end(&mut head)?;
            Ok(match log_identity(&head) {
                Ok(identity) => Log::Of(identity),
                Err(error) => Log::Unreadable(format!("{}: {error}", newest.display())),
            })
        };
        read().map_err(|error: io::Error| {
            anyhow::Error::new(error).context(format!("could not read {}", folder.display()))
        })
    }
}

/// Where it is kept as which device a volume was asked for: a machine whose disks have no serial numbers finds it there after a reboot.
fn asked_for(volume: &str) -> String {
    format!("/var/lib/kctl/volumes/{volume}")
}

/// The file of a log with the highest name, which begins with its number: etcd's `wal.Exist` looks for the same.
fn newest_log(folder: &Path) -> io::Result<Option<PathBuf>> {
    let mut newest = None;
    let items = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        items => items?,
    };
    for item in items {
        let path = item?.path();
        if path.extension().is_some_and(|ending| ending == "wal") {
            newest = newest.max(Some(path));
        }
    }
    Ok(newest)
}

/// Names of some files below a folder, without those that are being written.
fn files(folder: &Path, most: usize) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let items = match fs::read_dir(&folder) {
            Ok(items) => items,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => {
                return Err(error).with_context(|| format!("could not read {}", folder.display()));
            }
        };
        for item in items {
            let item = item?;
            let name = item.file_name().to_string_lossy().into_owned();
            if item.file_type()?.is_dir() {
                folders.push(item.path());
            } else if !is_staged_name(&name) {
                names.push(name);
            }
            if names.len() >= most {
                return Ok(names);
            }
        }
    }
    Ok(names)
}
