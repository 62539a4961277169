//! Whole folders: copy, size and removal.

use crate::{Error, Host};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::path::Path;

impl Host {
    /// Copies a folder with its files and folders to a new one. What the copy has is not flushed.
    pub fn copy_folder(&self, from: &str, to: &str) -> Result<(), Error> {
        let (from, to) = (self.path_below_root(from), self.path_below_root(to));
        self.copy_tree(&from, &to)
    }

    fn copy_tree(&self, from: &Path, to: &Path) -> Result<(), Error> {
        self.may_change()?;
        let failed = |source| Error::of_file("copy", from)(source);
        fs::create_dir(to).map_err(Error::of_file("make the folder", to))?;
        let mode = fs::metadata(from).map_err(failed)?.permissions();
        fs::set_permissions(to, mode).map_err(Error::of_file("set the mode of", to))?;
        for item in fs::read_dir(from).map_err(failed)? {
            let item = item.map_err(failed)?;
            let (path, copy) = (item.path(), to.join(item.file_name()));
            if item.file_type().map_err(failed)?.is_dir() {
                self.copy_tree(&path, &copy)?;
            } else {
                self.may_change()?;
                fs::copy(&path, &copy).map_err(Error::of_file("copy", &path))?;
            }
        }
        Ok(())
    }

    /// Removes a folder with all that it holds, if it exists.
    pub fn remove_folder(&self, path: &str) -> Result<(), Error> {
        self.may_change()?;
        let path = self.path_below_root(path);
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::of_file("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Flushes everything that was written to the file system of a folder.
    pub fn sync_file_system(&self, path: &str) -> Result<(), Error> {
        self.may_change()?;
        let path = self.path_below_root(path);
        let flushed = self.system.flush(&path);
        flushed.map_err(Error::of_file("flush the file system of", &path))
    }

    /// Bytes of all files in a folder and below it.
    pub fn folder_bytes(&self, path: &str) -> Result<u64, Error> {
        let path = self.path_below_root(path);
        let mut folders = vec![path.clone()];
        let mut count = || -> io::Result<u64> {
            let mut bytes = 0;
            while let Some(folder) = folders.pop() {
                for item in fs::read_dir(folder)? {
                    let item = item?;
                    if item.file_type()?.is_dir() {
                        folders.push(item.path());
                    } else {
                        bytes += item.metadata()?.len();
                    }
                }
            }
            Ok(bytes)
        };
        count().map_err(Error::of_file("read the size of", &path))
    }

    /// True if a process has locked the file with flock(2). False if there is no such file.
    pub fn is_locked(&self, path: &str) -> Result<bool, Error> {
        let path = self.path_below_root(path);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            file => file.map_err(Error::of_file("open", &path))?,
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(false),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(Error::of_file("lock", &path)(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Host, LocalSystem};
    use rustix::fs::{FlockOperation, flock};
    use std::fs;
    use std::sync::Arc;

    #[test]
    fn a_folder_is_copied_whole_and_a_locked_file_is_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::new(folder.path(), Arc::new(LocalSystem::default()));
        fs::create_dir_all(folder.path().join("data/deep")).unwrap();
        fs::write(folder.path().join("data/deep/db"), "12345").unwrap();
        fs::write(folder.path().join("data/log"), "67").unwrap();
        host.copy_folder("/data", "/copy").unwrap();
        assert_eq!(host.folder_bytes("/copy").unwrap(), 7);
        assert_eq!(
            fs::read_to_string(folder.path().join("copy/deep/db")).unwrap(),
            "12345"
        );
        let file = fs::File::open(folder.path().join("copy/deep/db")).unwrap();
        assert!(!host.is_locked("/copy/deep/db").unwrap());
        flock(&file, FlockOperation::LockExclusive).unwrap();
        assert!(host.is_locked("/copy/deep/db").unwrap());
        assert!(!host.is_locked("/copy/deep/none").unwrap());
        host.remove_folder("/copy").unwrap();
        host.remove_folder("/copy").unwrap();
        assert!(!folder.path().join("copy").exists());
    }
}
