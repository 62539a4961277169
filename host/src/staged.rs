//! A file that is being written under its temporary name.

use crate::files::remove_if_there;
use crate::{Error, Host};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

/// An unfinished atomic write; the file gets its name with [`StagedFile::commit`].
#[derive(Debug)]
pub struct StagedFile {
    file: File,
    temporary_path: PathBuf,
    target: PathBuf,
}

impl StagedFile {
    pub(crate) fn new(file: File, beside: PathBuf, target: PathBuf) -> Self {
        Self {
            file,
            temporary_path: beside,
            target,
        }
    }

    /// Appends bytes to the temporary file.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.file.write_all(bytes);
        written.map_err(Error::of_file("write", &self.target))
    }

    /// Flushes the file and renames it to its final name.
    pub fn commit(self, host: &Host) -> Result<(), Error> {
        let kept = self.file.sync_all();
        kept.and_then(|()| host.rename_durably(&self.temporary_path, &self.target))
            .map_err(Error::of_file("write", &self.target))
    }

    /// Removes the temporary file.
    pub fn discard(self) -> Result<(), Error> {
        remove_if_there(&self.temporary_path)
            .map_err(Error::of_file("remove", &self.temporary_path))
    }
}

impl Write for StagedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
