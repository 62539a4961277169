//! What a lab has made, written down before it is made: `lab down` undoes exactly that, whoever died in between.

use crate::place::Place;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// One thing that outlives the process that makes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Made {
    /// By pid and start time (field 22 of /proc/PID/stat, clock ticks), so that a recycled pid is left alone.
    Process {
        pid: u32,
        started: u64,
    },
    /// A named network namespace; links inside go with it.
    Netns {
        name: String,
    },
    Mount {
        path: PathBuf,
    },
    /// A loop device, found by its backing file, which is the lab's own.
    Loop {
        file: PathBuf,
    },
    /// Below a hierarchy's root, in every hierarchy.
    Cgroup {
        path: PathBuf,
    },
    /// Removed with all in it, when nothing is mounted below.
    Directory {
        path: PathBuf,
    },
}

/// The ledger of one lab: a file of JSON lines, only ever appended to.
#[derive(Debug)]
pub struct Ledger {
    file: File,
}

impl Ledger {
    /// Opens or begins the ledger. The lab's run directory has to exist.
    pub fn open(place: &Place) -> io::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(place.ledger())?;
        Ok(Self { file })
    }

    /// Writes down what is about to be made, in one write, so that concurrent writers never mix.
    pub fn record(&self, made: &Made) -> io::Result<()> {
        let mut line = serde_json::to_vec(made)?;
        line.push(b'\n');
        (&self.file).write_all(&line)
    }
}

/// Everything recorded, oldest first; a last line that a kill cut off was never followed by its making.
pub fn read(place: &Place) -> io::Result<Vec<Made>> {
    let mut text = String::new();
    match File::open(place.ledger()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?.read_to_string(&mut text)?,
    };
    let whole = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
    let lines = whole.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line).map_err(io::Error::from))
        .collect()
}
