//! An incomplete download: bytes on disk, and the sha256 of exactly those bytes.

use crate::digest::Sha256;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The file `SHA256.part` and the digest of its content. It is locked, because a second writer would invalidate the digest.
pub(super) struct PartFile {
    path: PathBuf,
    file: File,
    digest: Sha256,
    length: u64,
}

impl PartFile {
    /// Opens or creates the file, and computes the digest of what an earlier run left.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(path)?;
        file.try_lock().map_err(|error| {
            io::Error::new(
                io::ErrorKind::WouldBlock,
                format!("another nodeup is downloading it: {error}"),
            )
        })?;
        let mut digest = Sha256::default();
        let length = digest.update_from(&mut file)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            digest,
            length,
        })
    }

    /// Number of bytes so far.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// sha256 of the bytes so far, hex.
    pub(super) fn sha256(&self) -> String {
        self.digest.hex()
    }

    /// Appends bytes. After an error the part must be opened anew.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.digest.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Truncates the file and begins anew.
    pub(super) fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.digest = Sha256::default();
        self.length = 0;
        Ok(())
    }

    /// Renames the complete file. It is not flushed, because a later run verifies it again.
    pub(super) fn keep_as(self, name: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, name)
    }
}
