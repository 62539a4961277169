//! Files, folders and links.

use super::disk::{Disk, invalid, io_failure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::engine::Failure;
use model::host::{Directory, Link};
use model::node::{File, sha256};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

/// The file as it is. Content that differs is shown by its hash alone: it may be a secret of whoever wrote it.
pub(super) fn observe(disk: &Disk, want: &File) -> Result<Option<File>, Failure> {
    let failed = io_failure("reading", &want.path);
    let Some(about) = disk.about(&want.path).map_err(&failed)? else {
        return Ok(None);
    };
    let mut have = want.clone();
    if !about.is_file() {
        "(not a plain file)".clone_into(&mut have.content);
        return Ok(Some(have));
    }
    let found = disk.mode_and_owner(&about, &want.owner);
    (have.mode, have.owner) = found.map_err(&failed)?;
    let bytes = disk.read(&want.path).map_err(&failed)?.unwrap_or_default();
    if bytes != bytes_of(want)? {
        let text = String::from_utf8_lossy(&bytes);
        have.content = format!("(other content with sha256 {})", sha256(&text));
    }
    Ok(Some(have))
}

pub(super) fn put(disk: &Disk, want: &File) -> Result<(), Failure> {
    let written = disk.write(&want.path, &bytes_of(want)?, mode(&want.mode)?, &want.owner);
    written.map_err(io_failure("writing", &want.path))
}

fn bytes_of(file: &File) -> Result<Vec<u8>, Failure> {
    if !file.base64 {
        return Ok(file.content.clone().into_bytes());
    }
    let decoded = STANDARD.decode(&file.content);
    decoded.map_err(|error| {
        invalid(
            &format!("reading the content of {}", file.path),
            &error.to_string(),
        )
    })
}

/// Octal digits as a mode.
pub(super) fn mode(text: &str) -> Result<u32, Failure> {
    u32::from_str_radix(text, 8)
        .map_err(|error| invalid(&format!("reading mode {text:?}"), &error.to_string()))
}

pub(super) fn observe_folder(disk: &Disk, want: &Directory) -> Result<Option<Directory>, Failure> {
    let failed = io_failure("reading", &want.path);
    // A link to a folder is as good as a folder: operators move data that way.
    let Ok(about) = std::fs::metadata(disk.at(&want.path)) else {
        return Ok(None);
    };
    if !about.is_dir() {
        return Err(invalid(
            &format!("reading {}", want.path),
            "it is there, and not a folder: move it away",
        ));
    }
    let (mode, _) = disk.mode_and_owner(&about, "root:root").map_err(failed)?;
    Ok(Some(Directory {
        path: want.path.clone(),
        mode,
    }))
}

pub(super) fn put_folder(disk: &Disk, want: &Directory) -> Result<(), Failure> {
    let path = disk.at(&want.path);
    let mode = mode(&want.mode)?;
    let made = disk.folder(&path, 0o755).and_then(|()| {
        disk.may_change()?;
        std::fs::set_permissions(&path, Permissions::from_mode(mode))
    });
    made.map_err(io_failure("making the folder", &want.path))
}

pub(super) fn observe_link(disk: &Disk, want: &Link) -> Result<Option<Link>, Failure> {
    let target = disk.link_target(&want.path);
    let target = target.map_err(io_failure("reading the link", &want.path))?;
    Ok(target.map(|target| Link {
        path: want.path.clone(),
        target: target.to_string_lossy().into_owned(),
    }))
}

pub(super) fn put_link(disk: &Disk, want: &Link) -> Result<(), Failure> {
    let linked = disk.link(&want.path, &want.target);
    linked.map_err(io_failure("making the link", &want.path))
}
