//! The serial console: everything a host has written to it, over all its boots.

use super::state::{Host, Paths};
use crate::place::Place;
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// The whole text so far; bytes, since programs write what they like.
pub fn console(place: &Place, instance: &str) -> Result<Vec<u8>> {
    let path = Paths::of(place, instance).console();
    fs::read(&path).with_context(|| unknown(&path, instance))
}

/// Copies the text so far and all that follows, until the host is off for good.
pub fn follow(place: &Place, instance: &str, to: &mut dyn Write) -> Result<()> {
    let path = Paths::of(place, instance).console();
    let mut file = File::open(&path).with_context(|| unknown(&path, instance))?;
    loop {
        // Looked at before reading, so that the last words are read.
        let over = !Host::read(place, instance)?.launcher.alive()?;
        io::copy(&mut file, to).context("copying the console")?;
        to.flush().context("copying the console")?;
        if over {
            return Ok(());
        }
        sleep(Duration::from_millis(100));
    }
}

fn unknown(path: &Path, instance: &str) -> String {
    format!(
        "reading the console of host {instance} in {}: `lab list` shows the hosts",
        path.display()
    )
}
