//! Names of what is cached: a hash over everything that it is made from.

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A hash of parts in their order; two lists of parts that differ have different hashes.
#[derive(Clone, Default)]
pub struct CacheKey(Sha256);

impl CacheKey {
    pub fn add_part(&mut self, part: impl AsRef<[u8]>) -> &mut Self {
        let part = part.as_ref();
        self.0.update((part.len() as u64).to_be_bytes());
        self.0.update(part);
        self
    }

    /// Every file below a folder: path and content.
    pub fn add_folder(&mut self, folder: &Path) -> Result<&mut Self> {
        for path in list_files(folder)? {
            let name = path.strip_prefix(folder).unwrap_or(&path);
            let content = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            self.add_part(name.as_os_str().as_encoded_bytes())
                .add_part(content);
        }
        Ok(self)
    }

    /// Returns the key as 16 hexadecimal digits.
    pub fn to_hex(&self) -> String {
        let mut text = format!("{:x}", self.0.clone().finalize());
        text.truncate(16);
        text
    }
}

/// All files and links below a folder, sorted.
pub fn list_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("reading {}", folder.display()))?;
            let kind = entry.file_type()?;
            let list = if kind.is_dir() {
                &mut folders
            } else {
                &mut found
            };
            list.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// SHA-256 of a file, in hex.
pub fn sha256(path: &Path) -> Result<String> {
    let reading = || format!("reading {}", path.display());
    let mut hash = Sha256::new();
    let mut file = fs::File::open(path).with_context(reading)?;
    io::copy(&mut file, &mut hash).with_context(reading)?;
    Ok(format!("{:x}", hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::CacheKey;

    #[test]
    fn parts_do_not_run_into_each_other() {
        let of = |parts: &[&str]| {
            let mut key = CacheKey::default();
            for part in parts {
                key.add_part(part);
            }
            key.to_hex()
        };
        assert_eq!(of(&["a", "bc"]), of(&["a", "bc"]));
        assert_ne!(of(&["a", "bc"]), of(&["ab", "c"]));
        assert_eq!(of(&[]).len(), 16);
    }
}
