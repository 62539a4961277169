//! A state store in a directory: files of mode 0600 in directories of mode 0700, written beside and
//! renamed, every write under one lock so that conditions hold between processes.

use super::{
    Entry, Expect, FirstBytes, Object, StoreError, Version, fenced_error, sha256, sha256_of_reader,
};
use crate::fence::Fence;
use node::digest::to_hex;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Names of ours in the directory; no listing shows them and no key can be them.
const OURS: &str = ".kctl-";

/// What is written gets its name once it is complete.
const STAGED: &str = ".kctl-staged-";

#[derive(Clone, Debug)]
pub(super) struct FileStore {
    dir: PathBuf,
    fence: Fence,
}

impl FileStore {
    pub(super) fn new(dir: PathBuf, fence: Fence) -> Self {
        Self { dir, fence }
    }

    pub(super) fn without_fence(&self) -> Self {
        Self::new(self.dir.clone(), Fence::default())
    }

    pub(super) fn get(&self, key: &str) -> Result<Option<Object>, StoreError> {
        let path = self.path(key)?;
        let open = || {
            let mut file = File::open(&path)?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok((bytes, file.metadata()?.modified()?))
        };
        match open() {
            Ok((bytes, written)) => Ok(Some(Object {
                version: sha256(&bytes),
                bytes,
                age: Some(file_age(written)),
            })),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(io_error(&path, error)),
        }
    }

    pub(super) fn get_first(
        &self,
        key: &str,
        most: usize,
    ) -> Result<Option<FirstBytes>, StoreError> {
        let path = self.path(key)?;
        let read = || {
            let mut bytes = Vec::new();
            let file = File::open(&path)?;
            let written = file.metadata()?.modified()?;
            file.take(most as u64).read_to_end(&mut bytes)?;
            Ok((bytes, Some(file_age(written))))
        };
        match read() {
            Ok(found) => Ok(Some(found)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(io_error(&path, error)),
        }
    }

    pub(super) fn put(
        &self,
        key: &str,
        bytes: &[u8],
        expect: &Expect,
    ) -> Result<Version, StoreError> {
        let path = self.path(key)?;
        let _lock = self.lock_directory()?;
        check_expectation(key, &path, expect)?;
        let dir = path.parent().unwrap_or(&self.dir);
        make_dir(dir)?;
        let write = |file: &mut File| file.write_all(bytes);
        replace_file(dir, &path, write, || self.check_fence(key))?;
        Ok(sha256(bytes))
    }

    /// The content is read once: what was hashed is what is kept.
    pub(super) fn put_file(&self, key: &str, from: &Path, sha256: &[u8]) -> Result<(), StoreError> {
        let path = self.path(key)?;
        let _lock = self.lock_directory()?;
        if path.exists() {
            return Err(StoreError::Conflict {
                key: key.to_owned(),
            });
        }
        let dir = path.parent().unwrap_or(&self.dir);
        make_dir(dir)?;
        let write = |file: &mut File| {
            io::copy(&mut File::open(from)?, file)?;
            file.rewind()?;
            if sha256_of_reader(file)? == sha256 {
                return Ok(());
            }
            let message = format!("{} has changed meanwhile", from.display());
            Err(io::Error::new(ErrorKind::InvalidData, message))
        };
        replace_file(dir, &path, write, || self.check_fence(key))
    }

    /// Writes hold the lock of the directory, so what is there under a temporary name is of a process that was killed.
    pub(super) fn remove_leftovers(&self) -> Result<(), StoreError> {
        if !self.dir.exists() {
            return Ok(());
        }
        let _lock = self.lock_directory()?;
        remove_staged(&self.dir)
    }

    pub(super) fn sha256(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path(key)?;
        match File::open(&path).and_then(|mut file| sha256_of_reader(&mut file)) {
            Ok(digest) => Ok(Some(digest)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(io_error(&path, error)),
        }
    }

    /// Opens an object that may have `most` bytes.
    fn open_within(&self, key: &str, most: u64) -> Result<Option<File>, StoreError> {
        let path = self.path(key)?;
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
        match opened {
            Ok((bytes, _)) if bytes > most => Err(StoreError::TooLarge {
                key: key.to_owned(),
                most,
            }),
            Ok((_, file)) => Ok(Some(file)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(io_error(&path, error)),
        }
    }

    pub(super) fn get_file(
        &self,
        key: &str,
        to: &Path,
        most: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(mut from) = self.open_within(key, most)? else {
            return Ok(None);
        };
        let mut copy = || {
            let mut file = super::create_empty_file(to)?;
            io::copy(&mut from, &mut file)?;
            file.rewind()?;
            sha256_of_reader(&mut file)
        };
        copy().map(Some).map_err(|error| {
            let _ = fs::remove_file(to);
            io_error(to, error)
        })
    }

    pub(super) fn get_rest(&self, key: &str, to: &mut File, most: u64) -> Result<bool, StoreError> {
        let path = self.path(key)?;
        let Some(mut from) = self.open_within(key, most)? else {
            return Ok(false);
        };
        let mut append = || {
            let begun = to.seek(SeekFrom::End(0))?;
            from.seek(SeekFrom::Start(begun))?;
            io::copy(&mut from, to)
        };
        append().map_err(|error| io_error(&path, error))?;
        Ok(true)
    }

    pub(super) fn delete(&self, key: &str, expect: &Expect) -> Result<(), StoreError> {
        let path = self.path(key)?;
        if !self.dir.exists() && !matches!(expect, Expect::Version(_)) {
            return Ok(());
        }
        let _lock = self.lock_directory()?;
        if matches!(expect, Expect::Version(_)) {
            check_expectation(key, &path, expect)?;
        }
        self.check_fence(key)?;
        match fs::remove_file(&path) {
            Err(error) if !is_absent(&error) => Err(io_error(&path, error)),
            _ => {
                self.remove_empty(path.parent());
                Ok(())
            }
        }
    }

    pub(super) fn list(&self, prefix: &str) -> Result<Vec<Entry>, StoreError> {
        let mut entries = Vec::new();
        let within = prefix.rsplit_once('/').map_or("", |(dir, _)| dir);
        let start = if within.is_empty() {
            self.dir.clone()
        } else {
            self.path(within)?
        };
        self.collect_entries(&start, prefix, &mut entries)?;
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(entries)
    }

    fn collect_entries(
        &self,
        dir: &Path,
        prefix: &str,
        entries: &mut Vec<Entry>,
    ) -> Result<(), StoreError> {
        let items = match fs::read_dir(dir) {
            Ok(items) => items,
            Err(error) if is_absent(&error) => return Ok(()),
            Err(error) => return Err(io_error(dir, error)),
        };
        for item in items {
            let item = item.map_err(|error| io_error(dir, error))?;
            let path = item.path();
            let kind = item.file_type().map_err(|error| io_error(&path, error))?;
            let Some(key) = self.key_of_path(&path) else {
                continue;
            };
            if kind.is_dir() {
                self.collect_entries(&path, prefix, entries)?;
            } else if kind.is_file() && key.starts_with(prefix) {
                entries.extend(read_entry(key, &path)?);
            }
        }
        Ok(())
    }

    /// The key of a file, unless it is one of ours or has a name that is no text.
    fn key_of_path(&self, path: &Path) -> Option<String> {
        let ours = path.file_name()?.to_str()?.starts_with(OURS);
        let key = path.strip_prefix(&self.dir).ok()?.to_str()?;
        (!ours).then(|| key.to_owned())
    }

    /// A key's file. The key's parts were checked; links that lead out of the store are refused here.
    fn path(&self, key: &str) -> Result<PathBuf, StoreError> {
        let mut path = self.dir.clone();
        for part in key.split('/') {
            path.push(part);
            let link = fs::symlink_metadata(&path).is_ok_and(|data| data.is_symlink());
            if link || part.starts_with(OURS) {
                return Err(StoreError::Key(key.to_owned()));
            }
        }
        Ok(path)
    }

    /// Asked when the lock of the directory is held, which may take a while: right before something changes.
    fn check_fence(&self, key: &str) -> Result<(), StoreError> {
        self.fence
            .check_open()
            .map_err(|fenced| fenced_error(key, fenced))
    }

    /// Holds until dropped; the kernel frees it if the process dies.
    fn lock_directory(&self) -> Result<File, StoreError> {
        make_dir(&self.dir)?;
        let path = self.dir.join(format!("{OURS}lock"));
        let open = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path);
        let file = open.map_err(|error| io_error(&path, error))?;
        file.lock().map_err(|error| io_error(&path, error))?;
        Ok(file)
    }

    /// Empty directories are no objects: S3 has none either. Failure means that one is not empty.
    fn remove_empty(&self, mut dir: Option<&Path>) {
        while let Some(here) = dir {
            if here == self.dir || fs::remove_dir(here).is_err() {
                return;
            }
            dir = here.parent();
        }
    }
}

/// Removes files in a directory, and in those in it, that [`replace_file`] had not renamed yet.
fn remove_staged(dir: &Path) -> Result<(), StoreError> {
    for item in fs::read_dir(dir).map_err(|error| io_error(dir, error))? {
        let item = item.map_err(|error| io_error(dir, error))?;
        let (path, name) = (item.path(), item.file_name());
        let kind = item.file_type().map_err(|error| io_error(&path, error))?;
        let staged = name.to_str().and_then(|name| name.strip_prefix(STAGED));
        if kind.is_dir() {
            remove_staged(&path)?;
        } else if staged.is_some() {
            fs::remove_file(&path).map_err(|error| io_error(&path, error))?;
        }
    }
    Ok(())
}

fn check_expectation(key: &str, path: &Path, expect: &Expect) -> Result<(), StoreError> {
    let holds = match expect {
        Expect::Any => true,
        Expect::Absent => read_file(path)?.is_none(),
        Expect::Version(version) => {
            read_file(path)?.is_some_and(|bytes| sha256(&bytes) == *version)
        }
    };
    if holds {
        Ok(())
    } else {
        Err(StoreError::Conflict {
            key: key.to_owned(),
        })
    }
}

/// A file as an entry; `None`: it went meanwhile. Read piece by piece: it may be a binary.
fn read_entry(key: String, path: &Path) -> Result<Option<Entry>, StoreError> {
    let open = || {
        let mut file = File::open(path)?;
        Ok((sha256_of_reader(&mut file)?, file.metadata()?))
    };
    match open() {
        Ok((digest, metadata)) => {
            let written = metadata.modified().ok();
            let seconds = written.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
            Ok(Some(Entry {
                key,
                version: Version(to_hex(&digest)),
                size: metadata.len(),
                written: seconds.and_then(|at| i64::try_from(at.as_secs()).ok()),
                age: written.map(file_age),
            }))
        }
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(io_error(path, error)),
    }
}

fn read_file(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(io_error(path, error)),
    }
}

/// A key that is a prefix of another key's folder is no object.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory
    )
}

/// Writes beside, flushes, renames if that is `allowed`, flushes the directory: after a crash there is the old or the
/// new content.
fn replace_file(
    dir: &Path,
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
    allowed: impl FnOnce() -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let beside = dir.join(format!("{STAGED}{}-{serial}", std::process::id()));
    let written = OpenOptions::new()
        .create(true)
        .truncate(true)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| write(&mut file).and_then(|()| file.sync_all()))
        .map_err(|error| io_error(path, error))
        .and_then(|()| allowed())
        .and_then(|()| fs::rename(&beside, path).map_err(|error| io_error(path, error)));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written?;
    let flushed = File::open(dir).and_then(|dir| dir.sync_all());
    flushed.map_err(|error| io_error(path, error))
}

fn make_dir(dir: &Path) -> Result<(), StoreError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|error| io_error(dir, error))
}

/// How old a file is. A file of the future was written now.
fn file_age(written: SystemTime) -> Duration {
    let age = SystemTime::now().duration_since(written);
    age.unwrap_or_default()
}

fn io_error(path: &Path, source: io::Error) -> StoreError {
    StoreError::File {
        path: path.display().to_string(),
        source,
    }
}
