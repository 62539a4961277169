//! A folder of programs. It is made beside its place and renamed, so that it is whole wherever it is seen.

use crate::files::beside;
use crate::{Error, Host};
use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Folder and programs are for reading and running alone.
const MODE: u32 = 0o555;

impl Host {
    /// Makes a folder whose `bin` has copies of these programs: paths by name. One that is there is replaced: there is
    /// none for a moment.
    pub fn replace_programs(
        &self,
        path: &str,
        programs: &BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let target = self.at(path);
        let failed = Error::of_file("make", &target);
        let beside = beside(&target).map_err(&failed)?;
        self.make_programs(&beside, programs)?;
        let replaced = || {
            if target.exists() {
                self.may_change().map_err(io::Error::other)?;
                remove_folder(&target)?;
            }
            self.rename(&beside, &target)?;
            fs::set_permissions(&target, Permissions::from_mode(MODE))
        };
        replaced().map_err(failed)
    }

    fn make_programs(
        &self,
        folder: &Path,
        programs: &BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let failed = Error::of_file("make", folder);
        self.may_change()?;
        remove_folder(folder).map_err(&failed)?;
        let bin = folder.join("bin");
        self.make_parents(&bin.join("program")).map_err(&failed)?;
        for (name, source) in programs {
            self.may_change()?;
            let source = self.at(source);
            copy_program(&source, &bin.join(name)).map_err(Error::of_file("copy", &source))?;
        }
        fs::set_permissions(&bin, Permissions::from_mode(MODE))
            .and_then(|()| File::open(&bin)?.sync_all())
            .map_err(failed)
    }
}

fn copy_program(source: &Path, program: &Path) -> io::Result<()> {
    fs::copy(source, program)?;
    fs::set_permissions(program, Permissions::from_mode(MODE))?;
    File::open(program)?.sync_all()
}

/// Removes a folder of programs. Who is not root has to be allowed to write first.
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
