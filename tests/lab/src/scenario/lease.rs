//! Only one run at a time may use the name of a lab: others wait.

use crate::host;
use crate::lab_paths::LabPaths;
use anyhow::{Context, Result};
use std::fs::{self, File, TryLockError};
use std::io::{Write, stderr};

/// A file lock; it ends with the process.
#[derive(Debug)]
pub struct Lease(#[expect(dead_code, reason = "the lock goes with the file")] File);

impl Lease {
    pub fn take_for(place: &LabPaths) -> Result<Self> {
        let folder = host::cache_folder()?;
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let path = folder.join(format!("{}.lease", place.name()));
        let file = File::create(&path).with_context(|| format!("opening {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => return Ok(Self(file)),
            Err(TryLockError::WouldBlock) => {
                let name = place.name();
                writeln!(stderr(), "waiting for another run's lab {name} to end").ok();
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("locking {}", path.display()));
            }
        }
        file.lock()
            .with_context(|| format!("locking {}", path.display()))?;
        Ok(Self(file))
    }
}
