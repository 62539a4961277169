//! Files of the user's that nobody else may read: written as a whole or not at all.

use std::io::{self, Write};
use std::path::Path;

/// Replaces the file, or makes it, with the mode 0600. What is no regular file stays: a link or a device is not meant to be replaced.
pub fn replace_private_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if path.symlink_metadata().is_ok_and(|there| !there.is_file()) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is there, and is not a regular file",
        ));
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // A new file of this kind has the mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_is_replaced_and_a_link_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        for text in ["first", "second"] {
            replace_private_file(&file, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        symlink(&file, &link).unwrap();
        assert!(replace_private_file(&link, b"third").is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "second");
    }
}
