//! Downloads in their places. What was put there is on record with sizes and times, so that a look at the machine reads
//! no hundreds of megabytes.

use super::archive;
use super::failure::{file_failure, invalid};
use anyhow::{Context, bail};
use engine::Failure;
use host::{Error, Host};
use node::host::{Download, Place};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const RECORDS: &str = "/var/lib/kctl/downloads";

/// What was put where.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    /// Of the download.
    sha256: String,
    /// Files by path.
    files: BTreeMap<String, Stamp>,
}

/// A file as it was left: who changes it changes one of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    size: u64,
    mode: u32,
    /// Seconds and nanoseconds of its last change.
    changed: (i64, i64),
}

pub(super) fn observe(host: &Host, want: &Download) -> Result<Option<Download>, Failure> {
    let path = record_path(&want.name);
    let Some(bytes) = host.read(&path).map_err(file_failure("reading", &path))? else {
        return Ok(None);
    };
    let mut have = want.clone();
    match serde_json::from_slice::<Record>(&bytes) {
        Ok(record) if record.sha256 == want.sha256 => {
            if !as_left(host, &record).map_err(file_failure("reading the files of", &want.name))? {
                "(changed since)".clone_into(&mut have.sha256);
            }
        }
        Ok(record) => have.sha256 = record.sha256,
        Err(_) => "(unknown)".clone_into(&mut have.sha256),
    }
    Ok(Some(have))
}

fn as_left(host: &Host, record: &Record) -> Result<bool, Error> {
    for (path, stamp) in &record.files {
        if stamp_of(host, path)?.as_ref() != Some(stamp) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn stamp_of(host: &Host, path: &str) -> Result<Option<Stamp>, Error> {
    Ok(host
        .metadata(path)?
        .filter(std::fs::Metadata::is_file)
        .map(|about| Stamp {
            size: about.size(),
            mode: about.mode(),
            changed: (about.mtime(), about.mtime_nsec()),
        }))
}

fn record_path(name: &str) -> String {
    format!("{RECORDS}/{name}.json")
}

/// Installs it from the folder of verified downloads. Its hash is looked at once more: that folder outlives power cuts.
pub(super) fn put(host: &Host, cache: &Path, want: &Download) -> Result<(), Failure> {
    installed(host, cache, want)
        .map_err(|error| invalid(&format!("installing {}", want.name), &format!("{error:#}")))
}

fn installed(host: &Host, cache: &Path, want: &Download) -> anyhow::Result<()> {
    let source = cache.join(&want.sha256);
    let open = || File::open(&source).with_context(|| format!("opening {}", source.display()));
    let paths = match &want.place {
        Place::Program(path) => {
            let mut staged = host.stage(path, 0o755, Some("root:root"))?;
            let found = copy(open()?, &mut staged)?;
            if found != want.sha256 {
                staged.discard()?;
                bail!("{} has sha256 {found}", source.display());
            }
            staged.commit(host)?;
            vec![path.clone()]
        }
        Place::Members(_) | Place::Programs(_) => {
            let found = copy(open()?, &mut io::sink())?;
            if found != want.sha256 {
                bail!("{} has sha256 {found}", source.display());
            }
            archive::unpack(host, io::BufReader::new(open()?), &want.place)?
        }
    };
    let mut files = BTreeMap::new();
    for path in paths {
        let stamp = stamp_of(host, &path)?.with_context(|| format!("{path} is gone again"))?;
        files.insert(path, stamp);
    }
    let record = serde_json::to_vec(&Record {
        sha256: want.sha256.clone(),
        files,
    })?;
    host.write(&record_path(&want.name), &record, 0o644, Some("root:root"))?;
    Ok(())
}

/// Copies, and says the sha256 of what was copied.
fn copy(mut from: impl Read, to: &mut impl Write) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = from.read(&mut buffer)?;
        let Some(read) = buffer.get(..count).filter(|read| !read.is_empty()) else {
            return Ok(format!("{:x}", digest.finalize()));
        };
        digest.update(read);
        to.write_all(read)?;
    }
}
