//! JSON files that one process writes and others read meanwhile: written beside and renamed, so that readers see the old or the
//! new, never half of one.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Which file, and what failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("reading {}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("writing {}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} is not what this program writes there; of a lab of another version? `lab down` first", .path.display())]
    Content {
        path: PathBuf,
        source: serde_json::Error,
    },
}

/// `None` when there is no such file.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })?,
    };
    let value = serde_json::from_slice(&text);
    value.map(Some).map_err(|source| Error::Content {
        path: path.to_owned(),
        source,
    })
}

/// One writer at a time.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), Error> {
    let failed = |source| Error::Write {
        path: path.to_owned(),
        source,
    };
    let text = serde_json::to_vec_pretty(value).map_err(|error| failed(error.into()))?;
    let beside = path.with_extension("part");
    fs::write(&beside, text).map_err(failed)?;
    fs::rename(&beside, path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn what_was_written_is_read_and_what_was_not_is_none_or_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        assert_eq!(read_json::<Vec<u32>>(&path).unwrap(), None);
        for value in [vec![1, 2], vec![3]] {
            write_json(&path, &value).unwrap();
            assert_eq!(read_json(&path).unwrap(), Some(value));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let error = read_json::<BTreeMap<String, u32>>(&path).unwrap_err();
        assert!(error.to_string().contains("a.json"), "{error}");
        let nowhere = folder.path().join("none/a.json");
        assert!(matches!(write_json(&nowhere, &1), Err(Error::Write { .. })));
    }
}
