//! Our block in `/etc/hosts`. The file keeps its inode: pods mount the file itself.

use super::disk::{Disk, io_failure};
use model::engine::Failure;
use model::host::HostsBlock;
use rustix::fs::{FlockOperation, flock};
use std::fs::OpenOptions;
use std::io::{self, Read, Seek, Write};

pub(super) fn observe(disk: &Disk, want: &HostsBlock) -> Result<Option<HostsBlock>, Failure> {
    let file = disk
        .text(&want.path)
        .map_err(io_failure("reading", &want.path))?;
    let lines = want.lines_in(&file);
    Ok(lines.map(|lines| HostsBlock {
        lines,
        ..want.clone()
    }))
}

/// Rewrites the file in place under its lock, which protokube takes too. What is before our block is written over with
/// itself, so that a machine that dies here loses at most the block.
pub(super) fn put(disk: &Disk, want: &HostsBlock) -> Result<(), Failure> {
    rewrite(disk, want).map_err(io_failure("rewriting", &want.path))
}

fn rewrite(disk: &Disk, want: &HostsBlock) -> io::Result<()> {
    let path = disk.at(&want.path);
    if let Some(folder) = path.parent() {
        disk.folder(folder, 0o755)?;
    }
    disk.may_change()?;
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let text = want.written_into(&text);
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    disk.may_change()?;
    file.set_len(u64::try_from(text.len()).map_err(io::Error::other)?)?;
    file.sync_all()
}
