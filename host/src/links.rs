//! Symbolic links.

use crate::files::{absent_as_none, remove_if_there, staged_path};
use crate::{Error, Host};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::PathBuf;

impl Host {
    /// The target of a link; `None` if there is no link.
    pub fn link_target(&self, path: &str) -> Result<Option<PathBuf>, Error> {
        let path = self.path_below_root(path);
        let target = match fs::read_link(&path) {
            Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(None),
            other => absent_as_none(other),
        };
        target.map_err(Error::of_file("read the link", &path))
    }

    /// Creates or replaces a link to `target`, a path on the instance. An unchanged link is replaced too, so that programs that
    /// watch the folder see an event.
    pub fn make_link(&self, path: &str, target: &str) -> Result<(), Error> {
        let path = self.path_below_root(path);
        let linked = || {
            let beside = staged_path(&path)?;
            self.make_parents(&path)?;
            self.may_change().map_err(io::Error::other)?;
            remove_if_there(&beside)?;
            symlink(target, &beside)?;
            self.rename_durably(&beside, &path)
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
        host.remove_file("/etc/m/a").unwrap();
        host.remove_file("/etc/m/a").unwrap();
        assert_eq!(target(), None);
    }
}
