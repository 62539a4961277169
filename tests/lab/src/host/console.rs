//! The serial console: everything a host has written to it, over all its boots.

use super::state::{Host, HostPaths};
use crate::lab_paths::LabPaths;
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// The whole text so far; bytes, since programs write what they like.
pub fn read_console(place: &LabPaths, instance: &str) -> Result<Vec<u8>> {
    let path = HostPaths::for_host(place, instance).console_file();
    fs::read(&path).with_context(|| console_error(&path, instance))
}

/// Copies the text so far and all that follows, until the host is off for good.
pub fn follow_console(place: &LabPaths, instance: &str, to: &mut dyn Write) -> Result<()> {
    let path = HostPaths::for_host(place, instance).console_file();
    let mut file = File::open(&path).with_context(|| console_error(&path, instance))?;
    loop {
        // Looked at before reading, so that the last words are read.
        let over = !Host::read_host(place, instance)?.launcher.is_alive()?;
        io::copy(&mut file, to).context("copying the console")?;
        to.flush().context("copying the console")?;
        if over {
            return Ok(());
        }
        sleep(Duration::from_millis(100));
    }
}

fn console_error(path: &Path, instance: &str) -> String {
    format!(
        "reading the console of host {instance} in {}: `lab list` shows the hosts",
        path.display()
    )
}
