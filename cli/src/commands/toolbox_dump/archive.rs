//! The archive of a dump: a `.tar.gz` that only its owner can read, complete or absent.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tar::{Builder, EntryType, Header};

/// An archive that is being written, beside its place.
pub struct Archive {
    path: PathBuf,
    part: PathBuf,
    /// The folder that all entries are in.
    folder: String,
    time: u64,
    tar: Builder<GzEncoder<BufWriter<File>>>,
    /// What could not be read, and why.
    problems: Vec<String>,
}

impl Archive {
    /// Begins an archive at a path where there is no file. `folder`: the folder of all entries; `time`: their time, in seconds since
    /// 1970.
    pub fn create(path: &Path, folder: &str, time: u64) -> io::Result<Self> {
        if path.exists() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&part)?;
        let packed = GzEncoder::new(BufWriter::new(file), Compression::default());
        Ok(Self {
            path: path.to_owned(),
            part,
            folder: folder.to_owned(),
            time,
            tar: Builder::new(packed),
            problems: Vec::new(),
        })
    }

    /// Adds a file.
    pub fn add_file(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(self.time);
        let name = format!("{}/{name}", self.folder);
        self.tar.append_data(&mut header, name, content)
    }

    /// Adds a file, or notes why there is none.
    pub fn add_result<E: std::fmt::Display>(
        &mut self,
        name: &str,
        content: Result<Vec<u8>, E>,
    ) -> io::Result<()> {
        match content {
            Ok(content) => self.add_file(name, &content),
            Err(error) => {
                self.note_problem(&format!("{name}: {error:#}"));
                Ok(())
            }
        }
    }

    /// Notes what could not be read.
    pub fn note_problem(&mut self, problem: &str) {
        self.problems.push(problem.to_owned());
    }

    /// Gives the archive its name. Returns how many problems were noted.
    pub fn finish(mut self) -> io::Result<usize> {
        let problems = self.problems.len();
        if problems > 0 {
            let text = self.problems.join("\n") + "\n";
            self.add_file("problems.txt", text.as_bytes())?;
        }
        let mut file = self.tar.into_inner()?.finish()?;
        file.flush()?;
        file.get_ref().sync_all()?;
        fs::rename(&self.part, &self.path)?;
        Ok(problems)
    }
}
