//! A volume as a disk of this machine: its device, what is on it, making, checking, mounting and growing its file system.

use super::{Host, shown};
use anyhow::{Context, bail};
use model::etcd::{Content, Inside, MARKER, Marker, data_folder};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// How much of a disk must be zero for it to count as blank: whatever partitions or file systems begin with lies there.
const LOOKED_AT: usize = 1 << 20;

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
    /// The device of a disk, once the kernel shows it: by the volume's id where disks are NVMe, else as it was asked for.
    pub fn device(&self, disk: &Disk<'_>) -> Option<PathBuf> {
        let serial = disk.volume.replace('-', "");
        let by_id = format!("/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_{serial}");
        let found = fs::canonicalize(self.path(&by_id)).ok();
        let asked = Some(disk.asked).filter(|asked| !asked.is_empty());
        found
            .or_else(|| self.nvme_of(&serial))
            .or_else(|| fs::canonicalize(self.path(asked?)).ok())
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
        let what = || {
            format!(
                "could not see what {} holds ({})",
                disk.volume,
                shown(device)
            )
        };
        if self.mounted(disk, device)? {
            let inside = self.inside(disk).with_context(what)?;
            return Ok(Content::FileSystem(inside));
        }
        Ok(match self.signature(device).with_context(what)? {
            Some(kind) if kind == "ext4" => {
                self.mount(disk, device)?;
                Content::FileSystem(self.inside(disk).with_context(what)?)
            }
            Some(kind) => Content::Other(kind),
            None if is_zero(device).with_context(what)? => Content::Blank,
            None => Content::Unrecognized,
        })
    }

    /// Writes the marker of a mounted disk.
    pub fn mark(&self, disk: &Disk<'_>, marker: &Marker) -> anyhow::Result<()> {
        let place = format!("{}/{MARKER}", disk.folder());
        self.write(&place, &marker.to_json(), MARKER_MODE).map(drop)
    }

    /// Makes a file system. The caller has seen that nothing is lost.
    pub fn format(&self, disk: &Disk<'_>, device: &Path) -> anyhow::Result<()> {
        if self.mounted(disk, device)? {
            bail!("{} is mounted: no file system is made on it", disk.volume);
        }
        let device = text(device)?;
        let made = self.run("mkfs.ext4", &["-q", "-F", "-m0", device])?;
        if made.code != Some(0) {
            bail!(
                "could not make a file system on {} ({device}): {}",
                disk.volume,
                made.complaint
            );
        }
        Ok(())
    }

    /// Lets the file system of a mounted disk fill it: at once done if it does.
    pub fn grow(&self, disk: &Disk<'_>, device: &Path) -> anyhow::Result<()> {
        let device = text(device)?;
        let grown = self.run("resize2fs", &[device])?;
        if grown.code != Some(0) {
            bail!(
                "could not grow the file system of {} ({device}): {}",
                disk.volume,
                grown.complaint
            );
        }
        Ok(())
    }

    /// True if the disk is mounted in its place; another disk there is an error.
    pub fn mounted(&self, disk: &Disk<'_>, device: &Path) -> anyhow::Result<bool> {
        let folder = self.path(&disk.folder());
        let there = self.mounts.device_at(&folder);
        let there = there.context("could not read the table of mounts")?;
        match there {
            None => Ok(false),
            Some(there) if there == device => Ok(true),
            Some(there) => bail!(
                "{} is mounted at {}, which is for {}: unmount it",
                shown(&there),
                disk.folder(),
                shown(device)
            ),
        }
    }

    fn mount(&self, disk: &Disk<'_>, device: &Path) -> anyhow::Result<()> {
        self.check(disk, device)?;
        self.make_folder(&disk.folder(), 0o755)?;
        let mounted = self.mounts.mount(device, &self.path(&disk.folder()));
        mounted.with_context(|| format!("could not mount {} ({})", disk.volume, shown(device)))
    }

    /// Repairs what can be repaired without asking.
    fn check(&self, disk: &Disk<'_>, device: &Path) -> anyhow::Result<()> {
        let device = text(device)?;
        let checked = self.run("fsck.ext4", &["-p", device])?;
        if checked.code.is_none_or(|code| code >= FSCK_FAILED) {
            bail!(
                "the file system of {} has errors that need a decision: run `fsck.ext4 {device}` on this machine, or restore a \
                 snapshot: {}",
                disk.volume,
                checked.complaint
            );
        }
        Ok(())
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
            let log = self.path(&self.data(disk)).join("member/wal");
            let data = files(&log, usize::MAX)?
                .iter()
                .any(|name| has_ending(name, "wal"));
            return Ok(Inside::Marked { marker, data });
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
    let limit = LOOKED_AT as u64;
    File::open(device)?.take(limit).read_to_end(&mut begin)?;
    Ok(begin.iter().all(|byte| *byte == 0))
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str()
        .with_context(|| format!("{} is no text", shown(path)))
}
