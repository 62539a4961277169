//! A volume as a disk of this machine: its device, what is on it, checking and mounting its file system.

use super::{Host, shown};
use anyhow::{Context, bail};
use model::etcd::{
    Content, Inside, LOG_HEAD, Log, MARKER, Marker, data_folder, log_folder, log_identity,
};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// How much of a disk must be zero for it to count as blank: whatever partitions or file systems begin with lies there.
const LOOKED_AT: u64 = 1 << 20;

/// `blkid -p` found nothing that it knows.
const NOTHING_FOUND: i32 = 2;

/// e2fsck: errors are left (4), or it could not do its work (8 and above). 1 and 2 say that it corrected some.
const FSCK_FAILED: i32 = 4;

/// The marker is for everybody to read.
const MARKER_MODE: u32 = 0o644;

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
}

impl Host {
    /// The device of a disk, once the kernel shows it: by the volume's id where disks are NVMe, else as it was asked for, now or when
    /// it was mounted before.
    pub fn device(&self, disk: &Disk<'_>) -> Option<PathBuf> {
        let named = || match disk.asked {
            "" => self.link(&asked_for(disk.volume)),
            asked => Some(asked.into()),
        };
        self.by_serial(disk)
            .or_else(|| fs::canonicalize(self.path(named()?.to_str()?)).ok())
    }

    /// True if the kernel shows a volume by its id, as it does where disks are NVMe.
    pub fn shows(&self, volume: &str) -> bool {
        let disk = Disk {
            volume,
            asked: "",
            prefix: "",
        };
        self.by_serial(&disk).is_some()
    }

    fn by_serial(&self, disk: &Disk<'_>) -> Option<PathBuf> {
        let serial = disk.volume.replace('-', "");
        let by_id = format!("/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_{serial}");
        let found = fs::canonicalize(self.path(&by_id)).ok();
        found.or_else(|| self.nvme_of(&serial))
    }

    /// The NVMe disk with that serial number, as the kernel has it: udev's links may come later.
    fn nvme_of(&self, serial: &str) -> Option<PathBuf> {
        let disks = fs::read_dir(self.path("/sys/block")).ok()?;
        let mut names = disks.filter_map(|disk| disk.ok()?.file_name().into_string().ok());
        let name = names.find(|name| {
            let said = fs::read_to_string(self.path(&format!("/sys/block/{name}/device/serial")));
            said.is_ok_and(|said| said.trim() == serial)
        })?;
        fs::canonicalize(self.path(&format!("/dev/{name}"))).ok()
    }

    /// What a disk holds. One with a file system is checked and mounted to see.
    pub fn look(&self, disk: &Disk<'_>, device: &Path) -> anyhow::Result<Content> {
        self.look_at(disk, device).with_context(|| {
            format!(
                "could not see what {} holds ({})",
                disk.volume,
                shown(device)
            )
        })
    }

    fn look_at(&self, disk: &Disk<'_>, device: &Path) -> anyhow::Result<Content> {
        if !self.mounted(disk, device)? {
            let content = self.unmounted(device)?;
            if content != Content::FileSystem(Inside::Nothing) {
                return Ok(content);
            }
            if let Some(why) = self.check(device)? {
                return Ok(Content::Damaged(why));
            }
            self.mount(disk, device)?;
        }
        if self.mounts.read_only(&self.path(&disk.folder()))? {
            return Ok(Content::Damaged(
                "the kernel came upon them while it was in use, and lets nobody write to it. Restart this machine: it is checked \
                 and mended before it is mounted"
                    .to_owned(),
            ));
        }
        Ok(Content::FileSystem(self.inside(disk)?))
    }

    /// What a disk holds that is not mounted: of one with a file system only that it has one.
    pub(super) fn unmounted(&self, device: &Path) -> anyhow::Result<Content> {
        Ok(match self.signature(device)? {
            Some(kind) if kind == "ext4" => Content::FileSystem(Inside::Nothing),
            Some(kind) => Content::Other(kind),
            None if is_zero(device)? => Content::Blank,
            None => Content::Unrecognized,
        })
    }

    /// Writes the marker of a mounted disk.
    pub fn mark(&self, disk: &Disk<'_>, marker: &Marker) -> anyhow::Result<()> {
        let place = format!("{}/{MARKER}", disk.folder());
        self.write(&place, &marker.to_json(), MARKER_MODE).map(drop)
    }

    /// True if the disk is mounted in its place; another disk there is an error. What is mounted from a device that is gone is not: a
    /// volume that was detached by force and attached again has another one, since the kernel keeps the first for what uses it.
    pub fn mounted(&self, disk: &Disk<'_>, device: &Path) -> anyhow::Result<bool> {
        match self.device_at(disk)? {
            None => Ok(false),
            Some(there) if there == device => Ok(true),
            Some(there) if !there.exists() => Ok(false),
            Some(there) => bail!(
                "{} is mounted at {}, which is for {}: unmount it",
                shown(&there),
                disk.folder(),
                shown(device)
            ),
        }
    }

    fn device_at(&self, disk: &Disk<'_>) -> anyhow::Result<Option<PathBuf>> {
        let there = self.mounts.device_at(&self.path(&disk.folder()));
        there.context("could not read the table of mounts")
    }

    fn mount(&self, disk: &Disk<'_>, device: &Path) -> anyhow::Result<()> {
        self.unmount(disk)?;
        self.make_folder(&disk.folder(), 0o755)?;
        let mounted = self.mounts.mount(device, &self.path(&disk.folder()));
        mounted.with_context(|| format!("could not mount {} ({})", disk.volume, shown(device)))?;
        if !disk.asked.is_empty() && self.by_serial(disk).is_none() {
            self.make_link(&asked_for(disk.volume), disk.asked)?;
        }
        Ok(())
    }

    /// Takes a disk out of its place, if it is there. What uses it goes on with it until it ends.
    pub fn unmount(&self, disk: &Disk<'_>) -> anyhow::Result<()> {
        if self.device_at(disk)?.is_none() {
            return Ok(());
        }
        let unmounted = self.mounts.unmount(&self.path(&disk.folder()));
        unmounted.with_context(|| format!("could not unmount {}", disk.folder()))
    }

    /// Repairs what can be repaired without asking; else what is wrong, and what mends it.
    fn check(&self, device: &Path) -> anyhow::Result<Option<String>> {
        let device = text(device)?;
        let checked = self.run("fsck.ext4", &["-p", device])?;
        let failed = checked.code.is_none_or(|code| code >= FSCK_FAILED);
        let said = if checked.output == checked.complaint {
            checked.output
        } else {
            format!("{} {}", checked.output, checked.complaint)
        };
        Ok(failed.then(|| {
            format!(
                "mending them needs a decision, so run `fsck.ext4 {device}` on this machine: {said}"
            )
        }))
    }

    /// What a disk says it is; `None` if nothing that blkid knows.
    fn signature(&self, device: &Path) -> anyhow::Result<Option<String>> {
        // blkid says "nothing found" of what it cannot read, too.
        File::open(device)?;
        let said = self.run("blkid", &["-p", "-o", "export", text(device)?])?;
        let value = |name: &str| {
            let lines = said.output.lines().filter_map(|line| line.split_once('='));
            let mut values = lines.filter(|(key, _)| *key == name);
            values.next().map(|(_, value)| value.to_owned())
        };
        match said.code {
            Some(NOTHING_FOUND) => Ok(None),
            Some(0) => Ok(Some(match (value("TYPE"), value("PTTYPE")) {
                (Some(kind), None) => kind,
                (_, Some(table)) => format!("a {table} partition table"),
                (None, None) => "something that blkid knows".to_owned(),
            })),
            _ => Ok(Some(format!(
                "signatures of several kinds ({})",
                said.complaint
            ))),
        }
    }

    /// What the mounted file system of a disk holds. Folders alone are nothing: a machine may have died before it wrote the marker.
    fn inside(&self, disk: &Disk<'_>) -> anyhow::Result<Inside> {
        let place = format!("{}/{MARKER}", disk.folder());
        if let Some(text) = self.read(&place)? {
            let marker = Marker::read(&place, text.as_bytes())?;
            let log = self.log(disk)?;
            return Ok(Inside::Marked { marker, log });
        }
        let names = files(&self.path(&disk.folder()), 3)?;
        Ok(if names.is_empty() {
            Inside::Nothing
        } else {
            Inside::Unmarked(names)
        })
    }

    /// etcd's data folder on a disk, as the machine has the path.
    pub fn data(&self, disk: &Disk<'_>) -> String {
        format!("{}/{}", disk.folder(), data_folder(disk.prefix))
    }

    /// etcd's log on a mounted disk. Every file of it says whose it is; the newest is the one that etcd does not remove meanwhile. The
    /// names of new ones are given when their beginning is written.
    pub fn log(&self, disk: &Disk<'_>) -> anyhow::Result<Log> {
        let folder = self.path(&format!("{}/{}", disk.folder(), log_folder(disk.prefix)));
        let read = || {
            let Some(newest) = newest_log(&folder)? else {
                return Ok(Log::Missing);
            };
            let mut head = Vec::new();
            File::open(&newest)?.take(LOG_HEAD).read_to_end(&mut head)?;
            Ok(match log_identity(&head) {
                Ok(identity) => Log::Of(identity),
                Err(error) => Log::Unreadable(format!("{}: {error}", shown(&newest))),
            })
        };
        read().map_err(|error: std::io::Error| {
            anyhow::Error::new(error).context(format!("could not read {}", shown(&folder)))
        })
    }
}

/// Where it is kept as which device a volume was asked for: a machine whose disks have no serial numbers finds it there after a reboot.
fn asked_for(volume: &str) -> String {
    format!("/var/lib/kctl/volumes/{volume}")
}

/// The file of a log with the highest name, which begins with its number: etcd's `wal.Exist` looks for the same.
fn newest_log(folder: &Path) -> std::io::Result<Option<PathBuf>> {
    let mut newest = None;
    let items = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
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
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => {
                return Err(error).with_context(|| format!("could not read {}", shown(&folder)));
            }
        };
        for item in items {
            let item = item?;
            let name = item.file_name().to_string_lossy().into_owned();
            if item.file_type()?.is_dir() {
                folders.push(item.path());
            } else if !(name.starts_with('.') && has_ending(&name, "new")) {
                names.push(name);
            }
            if names.len() >= most {
                return Ok(names);
            }
        }
    }
    Ok(names)
}

fn has_ending(name: &str, ending: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, of)| of == ending)
}

/// True if the beginning of a disk is zero.
fn is_zero(device: &Path) -> anyhow::Result<bool> {
    let mut begin = Vec::new();
    File::open(device)?
        .take(LOOKED_AT)
        .read_to_end(&mut begin)?;
    Ok(begin.iter().all(|byte| *byte == 0))
}

pub(super) fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str()
        .with_context(|| format!("{} is no text", shown(path)))
}
