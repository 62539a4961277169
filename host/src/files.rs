//! Reads and writes files and folders. Writes are atomic: a file is written under a temporary name in the same folder, flushed
//! and renamed, and the folder is flushed. The temporary name is fixed, so a file that a killed agent left behind is
//! overwritten; random names, as those of the crate tempfile, would accumulate. It begins with a dot, so kubelet ignores it in
//! the manifests folder.

use crate::{Error, Host, StagedFile, owners};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// Mode of parent folders that are created with a file.
const FOLDER: u32 = 0o755;

impl Host {
    /// The bytes of a file; `None` if it does not exist.
    pub fn read_bytes(&self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        let path = self.path_below_root(path);
        absent_as_none(fs::read(&path)).map_err(Error::of_file("read", &path))
    }

    /// The text of a file; `None` if it does not exist. Fails if it is not UTF-8.
    pub fn read_text(&self, path: &str) -> Result<Option<String>, Error> {
        read_text_file(&self.path_below_root(path))
    }

    /// The text of a file with invalid UTF-8 replaced; empty if the file does not exist.
    pub fn read_lossy(&self, path: &str) -> Result<String, Error> {
        let bytes = self.read_bytes(path)?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Writes to a file of procfs or sysfs in one write; the kernel accepts or rejects the text as a whole.
    pub fn write_kernel_file(&self, path: &str, text: &str) -> Result<(), Error> {
        self.may_change()?;
        let path = self.path_below_root(path);
        let opened = OpenOptions::new().write(true).truncate(true).open(&path);
        opened
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(Error::of_file("write", &path))
    }

    /// Metadata of a file, a folder or a link itself; `None` if it does not exist.
    pub fn read_metadata(&self, path: &str) -> Result<Option<Metadata>, Error> {
        let path = self.path_below_root(path);
        absent_as_none(fs::symlink_metadata(&path)).map_err(Error::of_file("read", &path))
    }

    /// Mode as four octal digits, and owner: `like` if `like` (`user:group`) has the same ids, otherwise `uid:gid`.
    pub fn mode_and_owner(
        &self,
        metadata: &Metadata,
        like: &str,
    ) -> Result<(String, String), Error> {
        let mode = format!("{:04o}", metadata.permissions().mode() & 0o7777);
        let ids = (metadata.uid(), metadata.gid());
        let same = self.owner_ids(like)?.is_some_and(|wanted| wanted == ids);
        let owner = if same {
            like.to_owned()
        } else {
            format!("{}:{}", ids.0, ids.1)
        };
        Ok((mode, owner))
    }

    /// Creates a folder with this mode if it does not exist, and missing parents with mode 0755.
    pub fn make_folder(&self, path: &str, mode: u32) -> Result<(), Error> {
        let path = self.path_below_root(path);
        let made = || {
            self.make_parents(&path)?;
            self.make_folders(&path, mode)
        };
        made().map_err(Error::of_file("make the folder", &path))
    }

    /// Sets the mode of a file or folder.
    pub fn set_mode(&self, path: &str, mode: u32) -> Result<(), Error> {
        self.may_change()?;
        let path = self.path_below_root(path);
        fs::set_permissions(&path, Permissions::from_mode(mode))
            .map_err(Error::of_file("set the mode of", &path))
    }

    /// Writes a whole file atomically. `owner` is `user:group`, by name or number; `None` means the user of the agent.
    pub fn write_file(
        &self,
        path: &str,
        bytes: &[u8],
        mode: u32,
        owner: Option<&str>,
    ) -> Result<(), Error> {
        let mut staged = self.stage_file(path, mode, owner)?;
        staged.append(bytes)?;
        staged.commit(self)
    }

    /// Writes a file unless it already has this text. Returns whether it was written. Does not change the mode of an unchanged file.
    pub fn write_changed(&self, path: &str, text: &str, mode: u32) -> Result<bool, Error> {
        if self.read_text(path)?.as_deref() == Some(text) {
            return Ok(false);
        }
        self.write_file(path, text.as_bytes(), mode, None)?;
        Ok(true)
    }

    /// Begins an atomic write: creates the temporary file with its mode and owner.
    pub fn stage_file(
        &self,
        path: &str,
        mode: u32,
        owner: Option<&str>,
    ) -> Result<StagedFile, Error> {
        let target = self.path_below_root(path);
        let begun = || {
            let beside = staged_path(&target)?;
            self.make_parents(&target)?;
            self.may_change().map_err(io::Error::other)?;
            let file = create_beside(&beside, mode)?;
            if let Some(owner) = owner {
                self.set_owner(&file, owner)?;
            }
            Ok((file, beside))
        };
        let (file, beside) = begun().map_err(Error::of_file("write", &target))?;
        Ok(StagedFile::new(file, beside, target))
    }

    fn owner_ids(&self, owner: &str) -> Result<Option<(u32, u32)>, Error> {
        let passwd = self.read_lossy("/etc/passwd")?;
        let groups = self.read_lossy("/etc/group")?;
        Ok(owners::find_owner_ids(&passwd, &groups, owner))
    }

    fn set_owner(&self, file: &File, owner: &str) -> io::Result<()> {
        let Some((user, group)) = self.owner_ids(owner).map_err(io::Error::other)? else {
            let message = format!("no such user or group: {owner}");
            return Err(io::Error::new(ErrorKind::NotFound, message));
        };
        let metadata = file.metadata()?;
        if (metadata.uid(), metadata.gid()) == (user, group) {
            return Ok(());
        }
        fchown(file, Some(user), Some(group))
    }

    /// Removes a file or link if it exists, and flushes its folder, so that it does not come back after a power failure.
    pub fn remove_file(&self, path: &str) -> Result<(), Error> {
        self.may_change()?;
        let path = self.path_below_root(path);
        remove_and_sync(&path).map_err(Error::of_file("remove", &path))
    }

    /// Renames a folder; the new name is not in use.
    pub fn rename_folder(&self, from: &str, to: &str) -> Result<(), Error> {
        self.may_change()?;
        let from = self.path_below_root(from);
        let renamed = self.rename_durably(&from, &self.path_below_root(to));
        renamed.map_err(Error::of_file("rename", &from))
    }

    /// Creates missing parent folders of a path.
    pub(crate) fn make_parents(&self, path: &Path) -> io::Result<()> {
        match path.parent() {
            Some(folder) => self.make_folders(folder, FOLDER),
            None => Ok(()),
        }
    }

    /// Creates a folder and its missing parents, all with this mode.
    fn make_folders(&self, path: &Path, mode: u32) -> io::Result<()> {
        if path.is_dir() {
            return Ok(());
        }
        self.may_change().map_err(io::Error::other)?;
        make_folders(path, mode)
    }

    /// Renames a file and flushes the folder, so that the rename survives a crash.
    pub(crate) fn rename_durably(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.may_change().map_err(io::Error::other)?;
        rename_and_sync(from, to)
    }
}

/// The text of a file, by a path that includes the root folder; `None` if it does not exist.
pub fn read_text_file(path: &Path) -> Result<Option<String>, Error> {
    absent_as_none(fs::read_to_string(path)).map_err(Error::of_file("read", path))
}

/// Writes a secret of the agent atomically, by a path that includes the root folder. File mode 0600, folder mode 0700.
pub fn write_secret_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let written = || {
        if let Some(folder) = path.parent() {
            make_folders(folder, 0o700)?;
        }
        let beside = staged_path(path)?;
        let mut file = create_beside(&beside, 0o600)?;
        let whole = file.write_all(bytes).and_then(|()| file.sync_all());
        let placed = whole.and_then(|()| rename_and_sync(&beside, path));
        // On a full disk, a part of the secret would stay. Why it was not written says more than why that part could not be removed.
        placed.inspect_err(|_| drop(remove_if_there(&beside)))
    };
    written().map_err(Error::of_file("write", path))
}

/// Creates a temporary file, replacing one that a killed agent left. It has mode 0600 until `mode` is set.
fn create_beside(beside: &Path, mode: u32) -> io::Result<File> {
    remove_if_there(beside)?;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(beside)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(file)
}

/// The temporary name of a file during a write: hidden, and with an ending that programs which read whole folders ignore.
pub(crate) fn staged_path(target: &Path) -> io::Result<PathBuf> {
    let Some(name) = target.file_name() else {
        return Err(io::Error::new(
            ErrorKind::InvalidInput,
            "the path has no file name",
        ));
    };
    let name = format!(".{}.kctl-new", name.to_string_lossy());
    Ok(target.with_file_name(name))
}

/// True for temporary names of unfinished writes. Older releases used the ending `.new`.
pub fn is_staged_name(name: &str) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    name.starts_with('.') && matches!(ending, Some("kctl-new" | "new"))
}

pub(crate) fn make_folders(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(path)
}

fn rename_and_sync(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    match to.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

fn remove_and_sync(path: &Path) -> io::Result<()> {
    remove_if_there(path)?;
    // Also if it is not there: another process may have removed it and died before it flushed the folder.
    match path.parent().map(File::open) {
        Some(folder) => absent_as_none(folder.and_then(|folder| folder.sync_all())).map(drop),
        None => Ok(()),
    }
}

pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    absent_as_none(fs::remove_file(path)).map(drop)
}

pub(crate) fn absent_as_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Host, LocalSystem};
    use std::os::unix::fs::MetadataExt;
    use std::sync::Arc;

    fn new_host() -> (tempfile::TempDir, Host) {
        let folder = tempfile::TempDir::new().unwrap();
        let host = Host::new(folder.path(), Arc::new(LocalSystem::default()));
        (folder, host)
    }

    #[test]
    fn of_a_secret_that_cannot_be_placed_nothing_stays() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("keys");
        std::fs::create_dir_all(path.join("in-the-way")).unwrap();
        super::write_secret_file(&path, b"a word").unwrap_err();
        let names: Vec<_> = folder.path().read_dir().unwrap().flatten().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }

    #[test]
    fn a_file_is_written_only_if_it_says_something_else_and_nothing_stays_beside_it() {
        let (folder, host) = new_host();
        let write = |text| {
            host.write_changed("/etc/k/a.manifest", text, 0o400)
                .unwrap()
        };
        assert!(write("one"));
        assert!(!write("one"));
        assert!(write("two"));
        let folder = folder.path().join("etc/k");
        let names: Vec<_> = folder.read_dir().unwrap().collect();
        assert_eq!(names.len(), 1);
        let mode = folder.join("a.manifest").metadata().unwrap().mode();
        assert_eq!(mode & 0o777, 0o400);
    }

    #[test]
    fn what_a_killed_agent_left_beside_a_secret_is_written_over() {
        let (folder, _) = new_host();
        let path = folder.path().join("own/keys/kubelet.key");
        let left = path.with_file_name(".kubelet.key.kctl-new");
        super::write_secret_file(&path, b"one").unwrap();
        std::fs::write(&left, "half").unwrap();
        super::write_secret_file(&path, b"two").unwrap();
        assert!(!left.exists());
        let text = super::read_text_file(&path).unwrap();
        assert_eq!(text.as_deref(), Some("two"));
        let mode = |path: &std::path::Path| path.metadata().unwrap().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    }

    #[test]
    fn nothing_is_changed_once_the_agent_stops() {
        let (folder, host) = new_host();
        let host = host.with_stop(Arc::new(|| true));
        let all = [
            host.write_file("/etc/a", b"", 0o644, None),
            host.make_link("/etc/b", "/etc/a"),
            host.make_folder("/etc/c", 0o755),
            host.rewrite_in_place("/etc/hosts", |_| "text".to_owned()),
            host.remove_file("/etc/d"),
        ];
        assert!(all.iter().all(Result::is_err), "{all:?}");
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
}
