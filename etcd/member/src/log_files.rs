//! The files of etcd's write-ahead log in a data folder. The newest one is read: etcd renames a file to its final name only after
//! writing its beginning, and does not remove it while it is the newest.

use anyhow::Context;
use etcd_rules::{
    EtcdLog, LOG_FOLDER, LOG_HEAD, LastEntry, LogEnd, LogPosition, last_entry_of, log_identity,
    read_log_end, read_log_position,
};
use host::Host;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
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

/// Reads the last entry of the log; 0 without a log. `None` if it cannot be read.
pub(super) fn read_last_entry_in(host: &Host, data: &str) -> anyhow::Result<Option<LastEntry>> {
    let found = read_ends(host, data)?;
    let is_log = !matches!(read_log_in(host, data)?, EtcdLog::Unreadable(_));
    Ok(is_log.then(|| last_entry_of(&found).unwrap_or_default()))
}

/// Makes the log say that all its entries are committed. etcd drops entries of which that is not known if it is forced to be a
/// cluster of its own (`bootstrap.go`, "discarding uncommitted WAL entries"), although they may be acknowledged. Only for a copy.
pub(super) fn commit_whole_log(host: &Host, data: &str) -> anyhow::Result<()> {
    let ends = read_ends(host, data)?;
    let last = last_entry_of(&ends);
    let newest = ends.first().context("there is no log")?;
    let record = newest.commit_record(last.unwrap_or_default());
    let record = record.map_err(anyhow::Error::msg)?;
    look_at_newest(host, data, |path| {
        let path = path.ok_or(ErrorKind::NotFound)?;
        let mut file = OpenOptions::new().write(true).open(path)?;
        // What follows is zero, or a record that was not written completely.
        file.set_len(newest.offset)?;
        file.seek(SeekFrom::End(0))?;
        file.write_all(&record)?;
        file.sync_all()
    })
}

/// Where the newest files of the log end, until one of them has an entry; the newest first. A new file has none at first, but perhaps a
/// snapshot.
fn read_ends(host: &Host, data: &str) -> anyhow::Result<Vec<LogEnd>> {
    let folder = host.path_below_root(&format!("{data}/{LOG_FOLDER}"));
    let read = || {
        let mut files = log_files(&folder)?;
        files.sort();
        let mut ends = Vec::new();
        for file in files.iter().rev() {
            let end = read_log_end(BufReader::new(File::open(file)?))?;
            let has_entry = end.has_entry;
            ends.push(end);
            if has_entry {
                break;
            }
        }
        Ok(ends)
    };
    read().map_err(|error: io::Error| {
        anyhow::Error::new(error).context(format!("could not read {}", folder.display()))
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
    Ok(log_files(folder)?.into_iter().max())
}

pub(super) fn log_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let items = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        items => items?,
    };
    let mut files = Vec::new();
    for item in items {
        let path = item?.path();
        if path.extension().is_some_and(|ending| ending == "wal") {
            files.push(path);
        }
    }
    Ok(files)
}
