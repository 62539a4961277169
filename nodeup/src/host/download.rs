//! Installs downloads. Sizes and times of installed files are recorded, so that observing the instance does not read hundreds of
//! megabytes.

use super::archive;
use super::failure::{file_failure, permanent_failure};
use crate::digest::Sha256;
use anyhow::{Context, bail};
use engine::Failure;
use host::{Error, Host};
use node::host::{Download, InstallTarget};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const RECORDS: &str = "/var/lib/kctl/downloads";

/// The record of an installed download.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct InstallRecord {
    /// sha256 of the download, hex.
    sha256: String,
    /// Installed files by path.
    files: BTreeMap<String, FileStamp>,
}

/// Attributes of a file after installation. Changing the file changes at least one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileStamp {
    size: u64,
    mode: u32,
    /// Modification time: seconds and nanoseconds.
    changed: (i64, i64),
}

pub(super) fn observe_download(host: &Host, want: &Download) -> Result<Option<Download>, Failure> {
    let path = record_path(&want.name);
    let Some(bytes) = host
        .read_bytes(&path)
        .map_err(file_failure("reading", &path))?
    else {
        return Ok(None);
    };
    let mut have = want.clone();
    match serde_json::from_slice::<InstallRecord>(&bytes) {
        Ok(record) if record.sha256 == want.sha256 => {
            if !is_unchanged(host, &record)
                .map_err(file_failure("reading the files of", &want.name))?
            {
                "(changed since)".clone_into(&mut have.sha256);
            }
        }
        Ok(record) => have.sha256 = record.sha256,
        Err(_) => "(unknown)".clone_into(&mut have.sha256),
    }
    Ok(Some(have))
}

fn is_unchanged(host: &Host, record: &InstallRecord) -> Result<bool, Error> {
    for (path, stamp) in &record.files {
        if stamp_of(host, path)?.as_ref() != Some(stamp) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn stamp_of(host: &Host, path: &str) -> Result<Option<FileStamp>, Error> {
    Ok(host
        .read_metadata(path)?
        .filter(std::fs::Metadata::is_file)
        .map(|about| FileStamp {
            size: about.size(),
            mode: about.mode(),
            changed: (about.mtime(), about.mtime_nsec()),
        }))
}

fn record_path(name: &str) -> String {
    format!("{RECORDS}/{name}.json")
}

/// Installs a download from the cache. The hash is verified again, because the cache may be damaged by a power failure.
pub(super) fn put_download(host: &Host, cache: &Path, want: &Download) -> Result<(), Failure> {
    install_files(host, cache, want).map_err(|error| {
        permanent_failure(&format!("installing {}", want.name), &format!("{error:#}"))
    })
}

fn install_files(host: &Host, cache: &Path, want: &Download) -> anyhow::Result<()> {
    let source = cache.join(&want.sha256);
    let open = || File::open(&source).with_context(|| format!("opening {}", source.display()));
    let paths = match &want.place {
        InstallTarget::Program(path) => {
            let mut staged = host.stage_file(path, 0o755, Some("root:root"))?;
            let found = copy_with_sha256(open()?, &mut staged)?;
            if found != want.sha256 {
                staged.discard()?;
                bail!("{} has sha256 {found}", source.display());
            }
            staged.commit(host)?;
            vec![path.clone()]
        }
        InstallTarget::Members(_) | InstallTarget::Programs(_) => {
            let found = copy_with_sha256(open()?, &mut io::sink())?;
            if found != want.sha256 {
                bail!("{} has sha256 {found}", source.display());
            }
            archive::unpack_archive(host, io::BufReader::new(open()?), &want.place)?
        }
    };
    let mut files = BTreeMap::new();
    for path in paths {
        let stamp = stamp_of(host, &path)?
            .with_context(|| format!("{path} disappeared after its installation"))?;
        files.insert(path, stamp);
    }
    let record = serde_json::to_vec(&InstallRecord {
        sha256: want.sha256.clone(),
        files,
    })?;
    host.write_file(&record_path(&want.name), &record, 0o644, Some("root:root"))?;
    Ok(())
}

/// Copies and returns the sha256 of the copied bytes.
fn copy_with_sha256(mut from: impl Read, to: &mut impl Write) -> io::Result<String> {
    let mut digest = Sha256::default();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = from.read(&mut buffer)?;
        let Some(read) = buffer.get(..count).filter(|read| !read.is_empty()) else {
            return Ok(digest.hex());
        };
        digest.update(read);
        to.write_all(read)?;
    }
}
