//! nodeup's own secrets on disk: its alone, and after a crash the old or the new, never half of one.

use anyhow::Context;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// What is in it; `None`: it is not there.
pub fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("could not read {}", path.display())),
    }
}

/// Writes it, and its folder.
pub fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let beside = path.with_extension("new");
    let write = || -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&beside)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        File::open(folder)?.sync_all()
    };
    write().with_context(|| format!("could not write {}", path.display()))
}
