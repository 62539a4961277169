//! Making a file system on a disk, and letting it grow with the disk.

use super::disks::text;
use super::{Disk, Host, shown};
use anyhow::{Context, bail};
use model::etcd::Content;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Where an ext4 file system says how large it is (kernel: `Documentation/filesystems/ext4/super.rst`).
const SUPERBLOCK: u64 = 1024;
const MAGIC: u16 = 0xef53;
/// In `s_feature_incompat`: the number of blocks has a second half.
const WIDE: u32 = 0x80;

impl Host {
    /// Makes a file system on a disk on which that was seen. It is looked at once more, through one descriptor, by which mkfs reaches
    /// it too: the name may lead to another disk by then. mkfs itself takes the disk for itself alone, and fails where somebody has it.
    pub fn format(&self, disk: &Disk<'_>, device: &Path, seen: &Content) -> anyhow::Result<()> {
        if self.mounted(disk, device)? {
            bail!("{} is mounted: no file system is made on it", disk.volume);
        }
        let open = || OpenOptions::new().read(true).write(true).open(device);
        let held = open().with_context(|| format!("could not open {}", shown(device)))?;
        if self.device(disk).as_deref() != Some(device) || !is_same(&held, device)? {
            bail!("{} is {} no longer", shown(device), disk.volume);
        }
        let held_as = PathBuf::from(format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            held.as_raw_fd()
        ));
        let now = self.unmounted(&held_as)?;
        if now != *seen {
            bail!(
                "{} was {seen:?} and is {now:?} now: no file system is made on it",
                disk.volume
            );
        }
        // A reserve, which only root outside of containers may use (see `KernelMounts`): what a member needs to start can be written to
        // a volume that etcd has filled.
        let made = self.run("mkfs.ext4", &["-q", "-F", "-m1", text(&held_as)?])?;
        if made.code != Some(0) {
            bail!(
                "could not make a file system on {} ({}): {}",
                disk.volume,
                shown(device),
                made.complaint
            );
        }
        Ok(())
    }

    /// True if a whole group of blocks fits in behind the file system of a disk. What is left of less than one may be too little for mkfs
    /// and resize2fs.
    pub fn outgrown(&self, device: &Path) -> anyhow::Result<bool> {
        let looked = || {
            let mut file = File::open(device)?;
            let there = file.seek(SeekFrom::End(0))?;
            let filled = filled(&file)?;
            anyhow::Ok(filled.bytes + filled.group <= there)
        };
        looked().with_context(|| {
            format!(
                "could not see how large the file system on {} is",
                shown(device)
            )
        })
    }

    /// Lets the file system of a disk fill it: where it is mounted, while it is in use. One that is not is checked wholly before, since
    /// resize2fs wants that.
    pub fn grow(&self, disk: &Disk<'_>, device: &Path) -> anyhow::Result<()> {
        let mut steps = vec![("resize2fs", vec![text(device)?])];
        if !self.mounted(disk, device)? {
            steps.insert(0, ("fsck.ext4", vec!["-f", "-p", text(device)?]));
        }
        for (program, arguments) in steps {
            let ran = self.run(program, &arguments)?;
            let corrected = program == "fsck.ext4" && ran.code == Some(1);
            if ran.code != Some(0) && !corrected {
                bail!(
                    "could not grow the file system of {} ({}): {program}: {}",
                    disk.volume,
                    shown(device),
                    ran.complaint
                );
            }
        }
        Ok(())
    }
}

fn is_same(held: &File, device: &Path) -> anyhow::Result<bool> {
    let (held, named) = (held.metadata()?, std::fs::metadata(device)?);
    Ok((held.dev(), held.ino()) == (named.dev(), named.ino()))
}

/// How far a file system reaches.
struct Filled {
    bytes: u64,
    group: u64,
}

fn filled(device: &File) -> anyhow::Result<Filled> {
    let mut block = [0; 1024];
    device.read_exact_at(&mut block, SUPERBLOCK)?;
    let word = |at: usize| {
        let bytes = block.get(at..).and_then(|rest| rest.first_chunk::<4>());
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    let wide = if word(0x60) & WIDE == 0 {
        0
    } else {
        word(0x150)
    };
    let size = 1024_u64.checked_shl(word(0x18));
    let (Some(size), true) = (size, word(0x38) & 0xffff == u32::from(MAGIC)) else {
        bail!("it has no superblock");
    };
    let blocks = (u64::from(wide) << 32) | u64::from(word(0x4));
    Ok(Filled {
        bytes: blocks.saturating_mul(size),
        group: u64::from(word(0x20)).saturating_mul(size),
    })
}
