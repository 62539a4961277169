//! The files of etcd's write-ahead log in a data folder. The newest one is read: etcd renames a file to its final name only after
//! writing its beginning, and does not remove it while it is the newest.

use anyhow::Context;
use host::Host;
use node::etcd::{EtcdLog, LOG_FOLDER, LOG_HEAD, LogPosition, log_identity, read_log_position};
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Reads the identity of the log.
pub(super) fn read_log_in(host: &Host, data: &str) -> anyhow::Result<EtcdLog> {
    look_at_newest(host, data, |newest| {
        let Some(newest) = newest else {
            return Ok(EtcdLog::Missing);
        };
        let mut head = Vec::new();
        File::open(newest)?.take(LOG_HEAD).read_to_end(&mut head)?;
        Ok(match log_identity(&head) {
            Ok(identity) => EtcdLog::Of(identity),
            Err(error) => EtcdLog::Unreadable(format!("{}: {error}", newest.display())),
        })
    })
}

/// Reads how far the log reaches.
pub(super) fn read_position_in(host: &Host, data: &str) -> anyhow::Result<LogPosition> {
    look_at_newest(host, data, |newest| match newest {
        Some(newest) => read_log_position(BufReader::new(File::open(newest)?)),
        None => Ok(LogPosition::default()),
    })
}

/// Flushes what the log has. etcd flushes each file before it begins the next one (`wal.go`, `cut`).
pub(super) fn sync_log(host: &Host, data: &str) -> anyhow::Result<()> {
    look_at_newest(host, data, |newest| {
        let Some(newest) = newest else {
            return Ok(());
        };
        File::open(newest)?.sync_data()?;
        match newest.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    })
}

/// Name of the newest file, which grows with time.
pub(super) fn newest_log_name(host: &Host, data: &str) -> anyhow::Result<Option<String>> {
    look_at_newest(host, data, |newest| {
        let name = newest.and_then(Path::file_name);
        Ok(name.map(|name| name.to_string_lossy().into_owned()))
    })
}

fn look_at_newest<T>(
    host: &Host,
    data: &str,
    look: impl FnOnce(Option<&Path>) -> io::Result<T>,
) -> anyhow::Result<T> {
    let folder = host.path_below_root(&format!("{data}/{LOG_FOLDER}"));
    let looked = newest_log(&folder).and_then(|newest| look(newest.as_deref()));
    looked.with_context(|| format!("could not read {}", folder.display()))
}

/// The log file with the highest name, which begins with its number; etcd's `wal.Exist` uses the same suffix.
fn newest_log(folder: &Path) -> io::Result<Option<PathBuf>> {
    let mut newest = None;
    let items = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        items => items?,
    };
    for item in items {
        let path = item?.path();
        if path.extension().is_some_and(|ending| ending == "wal") {
            newest = newest.max(Some(path));
        }
    }
    Ok(newest)
}
