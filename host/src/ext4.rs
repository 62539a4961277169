//! ext4 file systems: checking one, and letting it grow with its disk. The only code that runs fsck and resize2fs.

use crate::{Error, Host};
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Where an ext4 file system says how large it is (kernel: `Documentation/filesystems/ext4/super.rst`).
const SUPERBLOCK: u64 = 1024;
const MAGIC: u16 = 0xef53;
/// In `s_feature_incompat`: the number of blocks has a second half.
const WIDE: u32 = 0x80;

/// e2fsck: errors are left (4), or it could not do its work (8 and above). 1 and 2 say that it corrected some.
const FSCK_FAILED: i32 = 4;
/// e2fsck corrected errors.
const FSCK_CORRECTED: i32 = 1;

impl Host {
    /// Repairs of an ext4 file system what can be repaired without asking; else what is wrong, and what mends it.
    pub fn repair_ext4(&self, device: &Path) -> Result<Option<String>, Error> {
        self.may_change()?;
        let path = device.display().to_string();
        let output = self.run("fsck.ext4", &["-p", &path])?;
        if output.code.is_some_and(|code| code < FSCK_FAILED) {
            return Ok(None);
        }
        let parts = [output.stdout.trim(), output.stderr.trim()];
        let said: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        Ok(Some(format!(
            "mending them needs a decision, so run `fsck.ext4 {path}` on this machine: {}",
            said.join(" ")
        )))
    }

    /// Lets an ext4 file system fill its device: one that is mounted, while it is in use. One that is not is checked wholly
    /// before, since resize2fs wants that. `disk`: as operators know it.
    pub fn grow_ext4(&self, disk: &str, device: &Path, mounted: bool) -> Result<(), Error> {
        let path = device.display().to_string();
        let check = ("fsck.ext4", vec!["-f", "-p", &path]);
        let resize = ("resize2fs", vec![path.as_str()]);
        let steps = if mounted {
            vec![resize]
        } else {
            vec![check, resize]
        };
        for (program, arguments) in steps {
            self.may_change()?;
            let output = self.run(program, &arguments)?;
            let corrected = program == "fsck.ext4" && output.code == Some(FSCK_CORRECTED);
            if !output.is_success() && !corrected {
                return Err(Error::FileSystem {
                    doing: "grow the file system of",
                    disk: disk.to_owned(),
                    device: device.to_owned(),
                    program: program.to_owned(),
                    complaint: output.complaint().to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// True if a whole group of blocks fits in behind the ext4 file system of a device. What is left of less than one may be too
/// little for mkfs and resize2fs.
pub fn is_outgrown(device: &Path) -> Result<bool, Error> {
    let looked = || {
        let mut file = File::open(device)?;
        let there = file.seek(SeekFrom::End(0))?;
        let filled = read_superblock(&file)?;
        Ok(filled.bytes + filled.group <= there)
    };
    looked().map_err(Error::of_file(
        "see how large the file system is on",
        device,
    ))
}

/// How far an ext4 file system reaches, and the size of a group of blocks, in bytes.
struct Filled {
    bytes: u64,
    group: u64,
}

fn read_superblock(device: &File) -> io::Result<Filled> {
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
        return Err(io::Error::other("it has no superblock"));
    };
    let blocks = (u64::from(wide) << 32) | u64::from(word(0x4));
    Ok(Filled {
        bytes: blocks.saturating_mul(size),
        group: u64::from(word(0x20)).saturating_mul(size),
    })
}
