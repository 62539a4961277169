//! Observes and writes files, folders and links.

use super::failure::{file_failure, permanent_failure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use engine::Failure;
use host::Host;
use node::config::File;
use node::digest::sha256_hex;
use node::host::{Directory, Link};

/// The observed file. Different content is represented by its hash only, because it may be a secret.
pub(super) fn observe_file(host: &Host, want: &File) -> Result<Option<File>, Failure> {
    let failed = file_failure("reading", &want.path);
    let Some(about) = host.read_metadata(&want.path).map_err(&failed)? else {
        return Ok(None);
    };
    let mut have = want.clone();
    if !about.is_file() {
        "(not a plain file)".clone_into(&mut have.content);
        return Ok(Some(have));
    }
    let found = host.mode_and_owner(&about, &want.owner);
    (have.mode, have.owner) = found.map_err(&failed)?;
    let bytes = host
        .read_bytes(&want.path)
        .map_err(&failed)?
        .unwrap_or_default();
    if bytes != bytes_of(want)? {
        have.content = format!("(other content with sha256 {})", sha256_hex(&bytes));
    }
    Ok(Some(have))
}

pub(super) fn put_file(host: &Host, want: &File) -> Result<(), Failure> {
    let written = host.write_file(
        &want.path,
        &bytes_of(want)?,
        parse_mode(&want.mode)?,
        Some(&want.owner),
    );
    written.map_err(file_failure("writing", &want.path))
}

fn bytes_of(file: &File) -> Result<Vec<u8>, Failure> {
    if !file.base64 {
        return Ok(file.content.clone().into_bytes());
    }
    let decoded = STANDARD.decode(&file.content);
    decoded.map_err(|error| {
        permanent_failure(
            &format!("reading the content of {}", file.path),
            &error.to_string(),
        )
    })
}

/// Parses octal digits as a mode.
pub(super) fn parse_mode(text: &str) -> Result<u32, Failure> {
    u32::from_str_radix(text, 8)
        .map_err(|error| permanent_failure(&format!("reading mode {text:?}"), &error.to_string()))
}

pub(super) fn observe_folder(host: &Host, want: &Directory) -> Result<Option<Directory>, Failure> {
    let failed = file_failure("reading", &want.path);
    // A link to a folder counts as a folder: operators move data that way.
    let Ok(about) = std::fs::metadata(host.path_below_root(&want.path)) else {
        return Ok(None);
    };
    if !about.is_dir() {
        return Err(permanent_failure(
            &format!("reading {}", want.path),
            "a file of this name exists: move it away",
        ));
    }
    let (mode, _) = host.mode_and_owner(&about, "root:root").map_err(failed)?;
    Ok(Some(Directory {
        path: want.path.clone(),
        mode,
    }))
}

pub(super) fn put_folder(host: &Host, want: &Directory) -> Result<(), Failure> {
    let mode = parse_mode(&want.mode)?;
    let made = host.make_folder(&want.path, 0o755);
    let made = made.and_then(|()| host.set_mode(&want.path, mode));
    made.map_err(file_failure("making the folder", &want.path))
}

pub(super) fn observe_link(host: &Host, want: &Link) -> Result<Option<Link>, Failure> {
    let target = host.link_target(&want.path);
    let target = target.map_err(file_failure("reading the link", &want.path))?;
    Ok(target.map(|target| Link {
        path: want.path.clone(),
        target: target.to_string_lossy().into_owned(),
    }))
}

pub(super) fn put_link(host: &Host, want: &Link) -> Result<(), Failure> {
    let linked = host.make_link(&want.path, &want.target);
    linked.map_err(file_failure("making the link", &want.path))
}
