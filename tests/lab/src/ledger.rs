//! What a lab has made, written down before it is made: `lab down` undoes exactly that, whoever died in between.

use crate::lab_paths::LabPaths;
use crate::process::Process;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// One thing that outlives the process that makes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LedgerEntry {
    Process(Process),
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

/// The ledger of one lab: a file of JSON lines, only ever appended to. Whoever has it open may make things, and so may
/// the programs begun by [`Ledger::locked_command`]; nothing is undone before all of them have ended.
#[derive(Debug)]
pub struct Ledger {
    file: File,
}

impl Ledger {
    /// Begins a lab, or goes on with one: its directories are made, its ledger is opened.
    pub fn begin(place: &LabPaths) -> io::Result<Self> {
        std::fs::create_dir_all(place.run())?;
        let ledger = Self::open(place)?;
        for own in [place.run(), place.data_folder()] {
            ledger.record(&LedgerEntry::Directory {
                path: own.to_owned(),
            })?;
        }
        std::fs::create_dir_all(place.data_folder())?;
        Ok(ledger)
    }

    /// Opens the ledger. The lab's run directory has to exist.
    pub fn open(place: &LabPaths) -> io::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(place.ledger_file())?;
        file.lock_shared()?;
        Ok(Self { file })
    }

    /// A program that makes what was recorded and ends soon. It shares the lock, as its standard input, for the case that
    /// it outlives its caller. What is to stay is begun otherwise, and recorded as a process.
    pub fn locked_command(&self, program: &str) -> io::Result<Command> {
        let mut command = Command::new(program);
        command.stdin(Stdio::from(self.file.try_clone()?));
        Ok(command)
    }

    /// Writes down what is about to be made, in one write, so that concurrent writers never mix.
    pub fn record(&self, made: &LedgerEntry) -> io::Result<()> {
        let mut line = serde_json::to_vec(made)?;
        line.push(b'\n');
        (&self.file).write_all(&line)
    }
}

/// Everything recorded, oldest first; a last line that a kill cut off was never followed by its making.
pub fn read_entries(place: &LabPaths) -> io::Result<Vec<LedgerEntry>> {
    let mut text = String::new();
    match File::open(place.ledger_file()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?.read_to_string(&mut text)?,
    };
    let whole = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
    let lines = whole.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line).map_err(io::Error::from))
        .collect()
}
