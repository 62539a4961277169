//! Checks and grows ext4 file systems. No other code runs fsck or resize2fs.

use crate::{Error, Host};
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Offset of the superblock in bytes (kernel: `Documentation/filesystems/ext4/super.rst`).
const SUPERBLOCK: u64 = 1024;
const MAGIC: u16 = 0xef53;
/// Offset of the magic number in the superblock.
const MAGIC_OFFSET: u64 = 0x38;
/// Flag in `s_feature_incompat`: the journal has changes that are not in place yet.
const RECOVER: u32 = 0x4;
/// Flag in `s_feature_incompat`: the block count has 64 bits.
const WIDE: u32 = 0x80;

/// e2fsck exit codes: from 4 errors remain, from 8 the check itself failed. 1 and 2 mean that it corrected errors.
const FSCK_FAILED: i32 = 4;
/// e2fsck exit code: it corrected errors.
const FSCK_CORRECTED: i32 = 1;

impl Host {
    /// Repairs everything in an ext4 file system that e2fsck repairs without asking. Returns `None` when the file system is clean
    /// afterwards, otherwise a description of the errors and how to repair them.
    pub fn repair_ext4(&self, device: &Path) -> Result<Option<String>, Error> {
        self.may_change()?;
        let path = device.display().to_string();
        let output = self.run_program("fsck.ext4", &["-p", &path])?;
        if output.code.is_some_and(|code| code < FSCK_FAILED) {
            return Ok(None);
        }
        let parts = [output.stdout.trim(), output.stderr.trim()];
        let said: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        Ok(Some(format!(
            "automatic repair was not possible; run `fsck.ext4 {path}` on this instance: {}",
            said.join(" ")
        )))
    }

    /// Grows an ext4 file system to the size of its device. A mounted one grows while in use; an unmounted one gets a full check
    /// first, because resize2fs demands it. `disk` is the name for messages (`vol-...`, `/dev/xvdf`).
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
            let output = self.run_program(program, &arguments)?;
            let corrected = program == "fsck.ext4" && output.code == Some(FSCK_CORRECTED);
            if !output.is_success() && !corrected {
                return Err(Error::FileSystem {
                    doing: "grow the file system of",
                    disk: disk.to_owned(),
                    device: device.to_owned(),
                    program: program.to_owned(),
                    complaint: output.error_output().to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// True if the device is larger than its ext4 file system by at least one block group. mkfs and resize2fs may leave a smaller
/// remainder unused.
pub fn is_outgrown(device: &Path) -> Result<bool, Error> {
    let looked = || {
        let mut file = File::open(device)?;
        let there = file.seek(SeekFrom::End(0))?;
        let filled = read_superblock(&file)?;
        Ok(filled.bytes + filled.group <= there)
    };
    looked().map_err(Error::of_file(
        "read the size of the file system on",
        device,
    ))
}

/// True if the journal of an ext4 file system has changes that are not in place yet: it was not unmounted.
pub(crate) fn has_pending_journal(device: &Path) -> io::Result<bool> {
    Ok(read_superblock(&File::open(device)?)?.is_pending)
}

/// True if a device has the magic number of an ext4 superblock, whatever else of it is damaged. A device that is too small has not.
pub(crate) fn has_ext4_magic(device: &File) -> io::Result<bool> {
    let mut magic = [0; 2];
    match device.read_exact_at(&mut magic, SUPERBLOCK + MAGIC_OFFSET) {
        Ok(()) => Ok(u16::from_le_bytes(magic) == MAGIC),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Size of an ext4 file system and of one of its block groups, in bytes.
struct Superblock {
    bytes: u64,
    group: u64,
    is_pending: bool,
}

fn read_superblock(device: &File) -> io::Result<Superblock> {
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
        return Err(io::Error::other("the device has no ext4 superblock"));
    };
    let blocks = (u64::from(wide) << 32) | u64::from(word(0x4));
    Ok(Superblock {
        bytes: blocks.saturating_mul(size),
        group: u64::from(word(0x20)).saturating_mul(size),
        is_pending: word(0x60) & RECOVER != 0,
    })
}
