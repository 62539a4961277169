//! Changes of files that are whole or not at all: written beside, flushed, renamed, and the folder flushed. Paths are those
//! of the machine; where its root is, only this knows.

use super::owners;
use model::engine::{Class, Failure};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{
    DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown, symlink,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A machine's files.
#[derive(Clone)]
pub(super) struct Disk {
    root: PathBuf,
    stop: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// A file that is being written beside its place. Nobody sees it before [`Staged::commit`].
pub(super) struct Staged {
    disk: Disk,
    file: File,
    beside: PathBuf,
    target: PathBuf,
}

impl Disk {
    pub fn new(root: &Path, stop: Arc<dyn Fn() -> bool + Send + Sync>) -> Self {
        Self {
            root: root.to_owned(),
            stop,
        }
    }

    /// Where a path of the machine is for us.
    pub fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Asked before every change.
    pub fn may_change(&self) -> io::Result<()> {
        if (self.stop)() {
            return Err(io::Error::other("stopped before this was done"));
        }
        Ok(())
    }

    /// What is in a file; `None` if there is none.
    pub fn read(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        absent_as_none(fs::read(self.at(path)))
    }

    /// The text of a file; empty if there is none. For files of the kernel's.
    pub fn text(&self, path: &str) -> io::Result<String> {
        let bytes = self.read(path)?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A file, folder or link itself.
    pub fn about(&self, path: &str) -> io::Result<Option<fs::Metadata>> {
        absent_as_none(fs::symlink_metadata(self.at(path)))
    }

    /// What a link points to; `None` if there is no link.
    pub fn link_target(&self, path: &str) -> io::Result<Option<PathBuf>> {
        match fs::read_link(self.at(path)) {
            Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(None),
            other => absent_as_none(other),
        }
    }

    /// The mode of what is there, octal, and its owner as `like` writes it if that is the same.
    pub fn mode_and_owner(&self, about: &fs::Metadata, like: &str) -> io::Result<(String, String)> {
        let mode = format!("{:04o}", about.permissions().mode() & 0o7777);
        let ids = (about.uid(), about.gid());
        let same = self.ids(like)?.is_some_and(|wanted| wanted == ids);
        let owner = if same {
            like.to_owned()
        } else {
            format!("{}:{}", ids.0, ids.1)
        };
        Ok((mode, owner))
    }

    /// Makes a folder and those above it.
    pub fn folder(&self, path: &Path, mode: u32) -> io::Result<()> {
        if !path.is_dir() {
            self.may_change()?;
            fs::DirBuilder::new()
                .recursive(true)
                .mode(mode)
                .create(path)?;
        }
        Ok(())
    }

    /// Writes a whole file.
    pub fn write(&self, path: &str, bytes: &[u8], mode: u32, owner: &str) -> io::Result<()> {
        let mut staged = self.stage(path, mode, owner)?;
        staged.write_all(bytes)?;
        staged.commit()
    }

    /// Begins a file beside its place. What a killed run left there is written over.
    pub fn stage(&self, path: &str, mode: u32, owner: &str) -> io::Result<Staged> {
        let target = self.at(path);
        let beside = beside(&target)?;
        if let Some(folder) = target.parent() {
            self.folder(folder, 0o755)?;
        }
        self.may_change()?;
        remove_if_there(&beside)?;
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&beside)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        self.give(&file, owner)?;
        Ok(Staged {
            disk: self.clone(),
            file,
            beside,
            target,
        })
    }

    fn ids(&self, owner: &str) -> io::Result<Option<(u32, u32)>> {
        let (passwd, groups) = (self.text("/etc/passwd")?, self.text("/etc/group")?);
        Ok(owners::ids(&passwd, &groups, owner))
    }

    fn give(&self, file: &File, owner: &str) -> io::Result<()> {
        let Some((user, group)) = self.ids(owner)? else {
            let message = format!("there is no user or group {owner}");
            return Err(io::Error::new(ErrorKind::NotFound, message));
        };
        let about = file.metadata()?;
        if (about.uid(), about.gid()) == (user, group) {
            return Ok(());
        }
        fchown(file, Some(user), Some(group))
    }

    /// Makes a link, or puts it in the place of the one that is there.
    pub fn link(&self, path: &str, target: &str) -> io::Result<()> {
        let place = self.at(path);
        let beside = beside(&place)?;
        if let Some(folder) = place.parent() {
            self.folder(folder, 0o755)?;
        }
        self.may_change()?;
        remove_if_there(&beside)?;
        symlink(target, &beside)?;
        self.rename(&beside, &place)
    }

    /// Renames, and makes the renaming last.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.may_change()?;
        fs::rename(from, to)?;
        match to.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }

    /// Removes a file of our own records.
    pub fn forget(&self, path: &str) -> io::Result<()> {
        self.may_change()?;
        remove_if_there(&self.at(path))
    }
}

impl Write for Staged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Staged {
    /// Puts the file in its place.
    pub fn commit(self) -> io::Result<()> {
        self.file.sync_all()?;
        self.disk.rename(&self.beside, &self.target)
    }

    /// Takes it away again.
    pub fn discard(self) -> io::Result<()> {
        remove_if_there(&self.beside)
    }
}

/// Where a file is written before it is renamed. Hidden, and not with an ending that those who read whole folders look for.
fn beside(target: &Path) -> io::Result<PathBuf> {
    let name = target.file_name().ok_or(ErrorKind::InvalidInput)?;
    let name = format!(".{}.kctl-new", name.to_string_lossy());
    Ok(target.with_file_name(name))
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    absent_as_none(fs::remove_file(path)).map(drop)
}

fn absent_as_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// A failure of a file's, with its place.
pub(super) fn io_failure<'a>(doing: &'a str, path: &'a str) -> impl Fn(io::Error) -> Failure + 'a {
    move |error| invalid(&format!("{doing} {path}"), &error.to_string())
}

/// A failure that trying again does not mend.
pub(super) fn invalid(call: &str, message: &str) -> Failure {
    Failure {
        class: Class::Invalid,
        call: call.to_owned(),
        code: String::new(),
        message: message.to_owned(),
        hint: None,
        request_id: None,
    }
}
