//! Folders of programs, built under a temporary name and renamed, so that a visible folder is always complete.

use crate::files::staged_path;
use crate::{Error, Host};
use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Mode of folder and programs: nobody may write.
const MODE: u32 = 0o555;

impl Host {
    /// Creates or replaces a folder whose `bin` has copies of `programs` (paths by name). While it is replaced, the folder is
    /// missing for a moment.
    pub fn replace_programs(
        &self,
        path: &str,
        programs: &BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let target = self.path_below_root(path);
        let failed = Error::of_file("make", &target);
        let beside = staged_path(&target).map_err(&failed)?;
        self.make_programs(&beside, programs)?;
        let replaced = || {
            if target.exists() {
                self.may_change().map_err(io::Error::other)?;
                remove_folder(&target)?;
            }
            self.rename_durably(&beside, &target)?;
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
            let source = self.path_below_root(source);
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

/// Removes a folder of programs. Restores write permission first, which users other than root need.
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
