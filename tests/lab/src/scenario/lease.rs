//! One run at a time has a lab's name: others are told, and what a killed run left is nobody's.

use crate::host;
use crate::place::Place;
use anyhow::{Context, Result, bail};
use std::fs::{self, File, TryLockError};

/// Held while the file is open; a killed process holds nothing.
#[derive(Debug)]
pub struct Lease(#[expect(dead_code, reason = "the lock goes with the file")] File);

impl Lease {
    pub fn of(place: &Place) -> Result<Self> {
        let folder = host::cache()?;
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let path = folder.join(format!("{}.lease", place.name()));
        let file = File::create(&path).with_context(|| format!("opening {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => bail!(
                "another run of a scenario has the lab {}: wait for its end",
                place.name()
            ),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("locking {}", path.display()))
            }
        }
    }
}
