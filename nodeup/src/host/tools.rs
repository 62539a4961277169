//! The folder of tools. It is made beside its place and renamed, so that it is whole wherever it is seen.

use super::disk::{Disk, io_failure};
use model::engine::Failure;
use model::host::Tools;
use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Folder and programs are for reading and running alone.
const MODE: u32 = 0o555;

pub(super) fn observe(disk: &Disk, want: &Tools) -> Result<Option<Tools>, Failure> {
    let failed = io_failure("reading", &want.path);
    if disk.about(&want.path).map_err(&failed)?.is_none() {
        return Ok(None);
    }
    let mut programs = BTreeMap::new();
    for (name, source) in &want.programs {
        let program = disk
            .about(&format!("{}/bin/{name}", want.path))
            .map_err(&failed)?;
        if program.is_some_and(|about| about.is_file()) {
            programs.insert(name.clone(), source.clone());
        }
    }
    Ok(Some(Tools {
        programs,
        ..want.clone()
    }))
}

pub(super) fn put(disk: &Disk, want: &Tools) -> Result<(), Failure> {
    made(disk, want).map_err(io_failure("making", &want.path))
}

fn made(disk: &Disk, want: &Tools) -> io::Result<()> {
    let target = disk.at(&want.path);
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let beside = target.with_file_name(format!(".{name}.kctl-new"));
    disk.may_change()?;
    remove_folder(&beside)?;
    let bin = beside.join("bin");
    disk.folder(&bin, 0o755)?;
    for (name, source) in &want.programs {
        disk.may_change()?;
        let program = bin.join(name);
        let source = disk.at(source);
        fs::copy(&source, &program).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("copying {}: {error}", source.display()),
            )
        })?;
        fs::set_permissions(&program, Permissions::from_mode(MODE))?;
        File::open(&program)?.sync_all()?;
    }
    fs::set_permissions(&bin, Permissions::from_mode(MODE))?;
    File::open(&bin)?.sync_all()?;
    if target.exists() {
        // Somebody took something out of it: it makes way, and there is none for a moment.
        disk.may_change()?;
        remove_folder(&target)?;
    }
    disk.rename(&beside, &target)?;
    fs::set_permissions(&target, Permissions::from_mode(MODE))
}

/// Removes a folder of tools. Who is not root has to be allowed to write first.
fn remove_folder(folder: &Path) -> io::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    for path in [folder.to_owned(), folder.join("bin")] {
        if path.is_dir() {
            fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        }
    }
    fs::remove_dir_all(folder)
}
