//! Rewrites files in place, such as `/etc/hosts`: pods bind-mount the file, and a renamed file would leave them with the old
//! text.

use crate::{Error, Host};
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

impl Host {
    /// Rewrites a file in place, keeping its inode, under its lock (flock(2)), which nodeup and protokube both take. `change` maps
    /// the old text to the new one. Writes from the first difference on, so a crash loses nothing before it.
    pub fn rewrite_in_place(
        &self,
        path: &str,
        change: impl FnOnce(&str) -> String,
    ) -> Result<(), Error> {
        let path = self.path_below_root(path);
        let written = || {
            self.make_parents(&path)?;
            self.may_change().map_err(io::Error::other)?;
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o644)
                .open(&path)?;
            file.lock()?;
            let mut before = String::new();
            file.read_to_string(&mut before)?;
            let text = change(&before);
            let pairs = before.bytes().zip(text.bytes());
            let same = pairs.take_while(|(old, new)| old == new).count();
            let rest = text.as_bytes().get(same..).unwrap_or_default();
            file.write_all_at(rest, same as u64)?;
            self.may_change().map_err(io::Error::other)?;
            file.set_len(text.len() as u64)?;
            file.sync_all()
        };
        written().map_err(Error::of_file("rewrite", &path))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Host, LocalSystem};
    use std::os::unix::fs::MetadataExt;
    use std::sync::Arc;

    #[test]
    fn a_file_rewritten_in_place_stays_the_same_file() {
        let folder = tempfile::TempDir::new().unwrap();
        let host = Host::new(folder.path(), Arc::new(LocalSystem::default()));
        let file = folder.path().join("hosts");
        std::fs::write(&file, "127.0.0.1 localhost\nlong and longer\n").unwrap();
        let before = file.metadata().unwrap().ino();
        let text = "127.0.0.1 localhost\nlo\n";
        host.rewrite_in_place("/hosts", |_| text.to_owned())
            .unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        assert_eq!(file.metadata().unwrap().ino(), before);
    }
}
