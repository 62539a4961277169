//! What is mounted where, read from the kernel, and trees removed without ever leaving their file system.

use anyhow::{Context, Result, bail};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// One line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub point: PathBuf,
    /// `MAJOR:MINOR` of what is mounted.
    pub device: String,
    /// Of the file system: `overlay`, `cgroup2`.
    pub kind: String,
}

/// All mounts of a process (`self`, or a pid), oldest first.
pub fn read_mounts(process: &str) -> Result<Vec<Mount>> {
    let path = format!("/proc/{process}/mountinfo");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    text.lines()
        .map(|line| parse(line).with_context(|| format!("{path} has the line {line:?}")))
        .collect()
}

fn parse(line: &str) -> Option<Mount> {
    let (place, source) = line.split_once(" - ")?;
    let place: Vec<&str> = place.split(' ').collect();
    Some(Mount {
        point: unescape_path(place.get(4)?),
        device: (*place.get(2)?).to_owned(),
        kind: source.split(' ').next()?.to_owned(),
    })
}

/// Blank, tab, newline and backslash stand there in octal.
fn unescape_path(path: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let code = after
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(byte) => bytes.push(byte),
            None => bytes.push(b'\\'),
        }
        rest = if code.is_some() {
            after.get(3..).unwrap_or_default()
        } else {
            after
        };
    }
    bytes.extend_from_slice(rest.as_bytes());
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// Mount points at and below a path, newest first: the order to unmount them in.
pub fn mount_points_below(path: &Path) -> Result<Vec<PathBuf>> {
    let mut points: Vec<PathBuf> = read_mounts("self")?
        .into_iter()
        .map(|mount| mount.point)
        .filter(|point| point.starts_with(path))
        .collect();
    points.reverse();
    Ok(points)
}

/// Removes a tree, refusing while anything is mounted in it; nothing there is fine.
pub fn remove_tree(path: &Path) -> Result<()> {
    let mounted = mount_points_below(path)?;
    if let Some(point) = mounted.first() {
        bail!(
            "{} is not removed: {} is still mounted in it",
            path.display(),
            point.display()
        );
    }
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_its_escapes() {
        let line = r"36 35 98:0 /mnt1 /mnt\040two\134 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let mount = Mount {
            point: PathBuf::from(r"/mnt two\"),
            device: "98:0".to_owned(),
            kind: "ext3".to_owned(),
        };
        assert_eq!(parse(line), Some(mount));
    }

    #[test]
    fn a_tree_with_a_mount_in_it_stays() {
        let refused = remove_tree(Path::new("/proc")).unwrap_err();
        assert!(refused.to_string().contains("still mounted"), "{refused}");
        assert!(Path::new("/proc/self").exists());
    }
}
