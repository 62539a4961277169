//! A download that goes on where it stopped: a file that only grows.

use crate::Error;
use crate::files::{make_folders, remove_if_there};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file of mode 0600 that is not complete yet. It is locked: a second download would mix its bytes with these.
#[derive(Debug)]
pub struct PartialFile {
    file: File,
    path: PathBuf,
    bytes: u64,
}

impl PartialFile {
    /// Opens the file by a path that includes the root folder, or creates it, with folder mode 0700.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let opened = || {
            if let Some(folder) = path.parent() {
                make_folders(folder, 0o700)?;
            }
            let mut options = OpenOptions::new();
            let file = options.append(true).create(true).mode(0o600).open(path)?;
            take_lock(&file)?;
            let bytes = file.metadata()?.len();
            Ok((file, bytes))
        };
        let (file, bytes) = opened().map_err(Error::of_file("write", path))?;
        Ok(Self {
            file,
            path: path.to_owned(),
            bytes,
        })
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends bytes.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let appended = self.file.write_all(bytes);
        // A full disk may have taken a part.
        self.bytes = self.file.metadata().map_or(self.bytes, |data| data.len());
        appended.map_err(Error::of_file("write", &self.path))
    }

    /// The file, for what appends to it by itself.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Empties it.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.bytes = 0;
        let emptied = self.file.set_len(0);
        emptied.map_err(Error::of_file("empty", &self.path))
    }

    /// Removes the file at this path, if there is one.
    pub fn remove(path: &Path) -> Result<(), Error> {
        remove_if_there(path).map_err(Error::of_file("remove", path))
    }
}

/// A lock between processes, which ends with this.
#[derive(Debug)]
pub struct FileLock(#[expect(dead_code, reason = "it is locked while it is open")] File);

impl FileLock {
    /// Locks a file by a path that includes the root folder, and makes it if need be. `None`: another process has it.
    pub fn take(path: &Path) -> Result<Option<Self>, Error> {
        let taken = || {
            if let Some(folder) = path.parent() {
                make_folders(folder, 0o700)?;
            }
            let mut options = OpenOptions::new();
            let file = options.append(true).create(true).mode(0o600).open(path)?;
            match file.try_lock() {
                Ok(()) => Ok(Some(Self(file))),
                Err(TryLockError::WouldBlock) => Ok(None),
                Err(TryLockError::Error(error)) => Err(error),
            }
        };
        taken().map_err(Error::of_file("lock", path))
    }
}

fn take_lock(file: &File) -> io::Result<()> {
    file.try_lock().map_err(|error| match error {
        TryLockError::Error(error) => error,
        TryLockError::WouldBlock => {
            io::Error::new(io::ErrorKind::WouldBlock, "another process works with it")
        }
    })
}

/// Opens a file for reading, by a path that includes the root folder.
pub fn open_file(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_process_neither_appends_nor_takes_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let (part, lock) = (folder.path().join("a/part"), folder.path().join("lock"));
        let (mut first, held) = (
            PartialFile::open(&part).unwrap(),
            FileLock::take(&lock).unwrap().unwrap(),
        );
        first.append(b"123").unwrap();
        assert!(PartialFile::open(&part).is_err() && FileLock::take(&lock).unwrap().is_none());
        drop((first, held));
        assert_eq!(PartialFile::open(&part).unwrap().bytes(), 3);
        assert!(FileLock::take(&lock).unwrap().is_some());
    }
}
