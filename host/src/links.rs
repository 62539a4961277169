//! Symbolic links.

use crate::files::{absent_as_none, beside, remove_if_there};
use crate::{Error, Host};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::PathBuf;

impl Host {
    /// What a link points to; `None` if there is no link.
    pub fn link_target(&self, path: &str) -> Result<Option<PathBuf>, Error> {
        let path = self.at(path);
        let target = match fs::read_link(&path) {
            Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(None),
            other => absent_as_none(other),
        };
        target.map_err(Error::of_file("read the link", &path))
    }

    /// Makes a link point to `target` (a path of the machine), anew even if it does: whoever watches the folder looks again.
    pub fn make_link(&self, path: &str, target: &str) -> Result<(), Error> {
        let path = self.at(path);
        let linked = || {
            let beside = beside(&path)?;
            self.make_parents(&path)?;
            self.may_change().map_err(io::Error::other)?;
            remove_if_there(&beside)?;
            symlink(target, &beside)?;
            self.rename(&beside, &path)
        };
        linked().map_err(Error::of_file("make the link", &path))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Host, LocalSystem};
    use std::os::unix::fs::MetadataExt;
    use std::sync::Arc;

    #[test]
    fn a_link_is_made_anew_and_may_dangle() {
        let folder = tempfile::TempDir::new().unwrap();
        let host = Host::new(folder.path(), Arc::new(LocalSystem::default()));
        host.make_link("/etc/m/a", "/mnt/nowhere").unwrap();
        let inode = || {
            folder
                .path()
                .join("etc/m/a")
                .symlink_metadata()
                .unwrap()
                .ino()
        };
        let target = || host.link_target("/etc/m/a").unwrap();
        let first = inode();
        assert_eq!(target(), Some("/mnt/nowhere".into()));
        host.make_link("/etc/m/a", "/mnt/nowhere").unwrap();
        assert_ne!(inode(), first, "whoever watches sees a new one");
        host.remove("/etc/m/a").unwrap();
        host.remove("/etc/m/a").unwrap();
        assert_eq!(target(), None);
    }
}
