//! Files and links. What is written is written beside and renamed: a machine that dies keeps the old or has the new. Names beside begin
//! with a dot, which kubelet passes over in its folder of manifests.

use super::{Host, shown};
use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

impl Host {
    /// A file's text; `None` if it is not there.
    pub fn read(&self, path: &str) -> anyhow::Result<Option<String>> {
        let path = self.path(path);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("could not read {}", shown(&path))),
        }
    }

    /// Makes a file say that, with that mode; true if it did not say it before. The mode of a file that says it is left alone.
    pub fn write(&self, path: &str, text: &str, mode: u32) -> anyhow::Result<bool> {
        if self.read(path)?.as_deref() == Some(text) {
            return Ok(false);
        }
        let path = self.path(path);
        let beside = beside(&path)?;
        let written = || {
            make_folders(&path, 0o755)?;
            absent(fs::remove_file(&beside))?;
            let options = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(mode)
                .open(&beside);
            let mut file = options?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&beside, &path)?;
            sync_folder(&path)
        };
        written().with_context(|| format!("could not write {}", shown(&path)))?;
        Ok(true)
    }

    /// Makes of a file's text another without making another file of it: who has mounted it sees the change. Only what differs is
    /// written, from where it begins to differ, under the file's lock, which nodeup takes too.
    pub fn rewrite(&self, path: &str, change: impl FnOnce(&str) -> String) -> anyhow::Result<()> {
        let path = self.path(path);
        let written = || {
            make_folders(&path, 0o755)?;
            let options = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o644)
                .open(&path);
            let mut file = options?;
            flock(&file, FlockOperation::LockExclusive)?;
            let mut before = String::new();
            file.read_to_string(&mut before)?;
            let text = change(&before);
            let same = before.bytes().zip(text.bytes());
            let same = same.take_while(|(old, new)| old == new).count();
            let rest = text.as_bytes().get(same..).unwrap_or_default();
            file.write_all_at(rest, same as u64)?;
            file.set_len(text.len() as u64)?;
            file.sync_all()
        };
        written().with_context(|| format!("could not rewrite {}", shown(&path)))
    }

    /// Where a link points to; `None` if it is not there or no link.
    pub fn link(&self, path: &str) -> Option<PathBuf> {
        fs::read_link(self.path(path)).ok()
    }

    /// Makes a link point there (as the machine has the path), anew even if it does: whoever watches the folder looks at it again.
    pub fn make_link(&self, path: &str, to: &str) -> anyhow::Result<()> {
        let path = self.path(path);
        let beside = beside(&path)?;
        let linked = || {
            make_folders(&path, 0o755)?;
            absent(fs::remove_file(&beside))?;
            symlink(to, &beside)?;
            fs::rename(&beside, &path)?;
            sync_folder(&path)
        };
        linked().with_context(|| format!("could not make the link {}", shown(&path)))
    }

    /// Removes a file or link, if it is there.
    pub fn remove(&self, path: &str) -> anyhow::Result<()> {
        let path = self.path(path);
        absent(fs::remove_file(&path)).with_context(|| format!("could not remove {}", shown(&path)))
    }

    /// Makes a folder with that mode, and those above it.
    pub fn make_folder(&self, path: &str, mode: u32) -> anyhow::Result<()> {
        let path = self.path(path);
        let made = || {
            make_folders(&path, 0o755)?;
            match DirBuilder::new().mode(mode).create(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
                made => made,
            }
        };
        made().with_context(|| format!("could not make the folder {}", shown(&path)))
    }
}

/// Where a file is written before it has its name.
fn beside(path: &Path) -> anyhow::Result<PathBuf> {
    let Some(name) = path.file_name() else {
        bail!("{} is no file", shown(path));
    };
    Ok(path.with_file_name(format!(".{}.new", name.to_string_lossy())))
}

/// The folders above a path.
fn make_folders(path: &Path, mode: u32) -> std::io::Result<()> {
    match path.parent() {
        Some(folder) => DirBuilder::new().recursive(true).mode(mode).create(folder),
        None => Ok(()),
    }
}

fn sync_folder(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

fn absent(removed: std::io::Result<()>) -> std::io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Host, KernelMounts};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::sync::Arc;

    fn host() -> (tempfile::TempDir, Host) {
        let folder = tempfile::TempDir::new().unwrap();
        let host = Host::at(folder.path(), "", Arc::new(KernelMounts));
        (folder, host)
    }

    #[test]
    fn a_file_is_written_only_if_it_says_something_else_and_nothing_stays_beside_it() {
        let (folder, host) = host();
        assert!(host.write("/etc/k/a.manifest", "one", 0o400).unwrap());
        assert!(!host.write("/etc/k/a.manifest", "one", 0o400).unwrap());
        assert!(host.write("/etc/k/a.manifest", "two", 0o400).unwrap());
        let folder = folder.path().join("etc/k");
        let names: Vec<_> = folder.read_dir().unwrap().collect();
        assert_eq!(names.len(), 1);
        let mode = folder.join("a.manifest").metadata().unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o400);
    }

    #[test]
    fn a_file_rewritten_in_place_stays_the_same_file() {
        let (folder, host) = host();
        let file = folder.path().join("hosts");
        std::fs::write(&file, "127.0.0.1 localhost\nlong and longer\n").unwrap();
        let before = file.metadata().unwrap().ino();
        let text = "127.0.0.1 localhost\nlo\n";
        host.rewrite("/hosts", |_| text.to_owned()).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        assert_eq!(file.metadata().unwrap().ino(), before);
    }

    #[test]
    fn a_link_is_made_anew_and_may_dangle() {
        let (folder, host) = host();
        host.make_link("/etc/m/a", "/mnt/nowhere").unwrap();
        let inode = || {
            folder
                .path()
                .join("etc/m/a")
                .symlink_metadata()
                .unwrap()
                .ino()
        };
        let first = inode();
        assert_eq!(
            host.link("/etc/m/a").unwrap().to_str(),
            Some("/mnt/nowhere")
        );
        host.make_link("/etc/m/a", "/mnt/nowhere").unwrap();
        assert_ne!(inode(), first, "whoever watches sees a new one");
        host.remove("/etc/m/a").unwrap();
        host.remove("/etc/m/a").unwrap();
        assert_eq!(host.link("/etc/m/a"), None);
    }
}
