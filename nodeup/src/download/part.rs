//! A download on its way: bytes on disk, and the sha256 of exactly those bytes.

use crate::digest::Sha256;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The file `SHA256.part`, and what is in it. Locked: with two writers the sum would be another than the content's.
pub(super) struct Part {
    path: PathBuf,
    file: File,
    digest: Sha256,
    length: u64,
}

impl Part {
    /// What an earlier run left, or nothing. Reads what is there.
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
                format!("another nodeup writes it: {error}"),
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

    /// How many bytes there are.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Their sha256, hex.
    pub(super) fn sha256(&self) -> String {
        self.digest.hex()
    }

    /// Adds bytes. After an error only [`Part::open`] knows what is in the file.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.digest.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Begins again with nothing.
    pub(super) fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.digest = Sha256::default();
        self.length = 0;
        Ok(())
    }

    /// Gives the whole file its name. Not flushed to disk: who finds it in a later run reads it again anyway.
    pub(super) fn keep_as(self, name: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, name)
    }
}
