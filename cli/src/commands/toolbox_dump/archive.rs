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
        // What is there may be somebody else's file, who could read what is written to it.
        match fs::remove_file(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
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

    /// Adds a file, or notes that its name is none for an archive: names may come from instances, and nothing must be extracted beside the
    /// archive's folder.
    pub fn add_file(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        if !name.split('/').all(is_plain_name) {
            self.note_problem(&format!("left out, because of its name: {name:?}"));
            return Ok(());
        }
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

/// True for a part of a path that means the same to every program.
pub fn is_plain_name(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:+~@=".contains(&byte);
    (1..=255).contains(&part.len()) && part != "." && part != ".." && part.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::os::unix::fs::PermissionsExt;

    fn entries(path: &Path) -> Vec<String> {
        let mut archive = tar::Archive::new(GzDecoder::new(File::open(path).unwrap()));
        let entries = archive.entries().unwrap();
        let names = entries.map(|entry| entry.unwrap().path().unwrap().display().to_string());
        names.collect()
    }

    #[test]
    fn no_entry_leaves_the_folder_and_a_bad_name_ends_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar.gz");
        let mut archive = Archive::create(&path, "stem", 7).unwrap();
        let long = format!("kube-proxy&a={}/../../../../x.log", "A".repeat(120));
        let longest = "A".repeat(300);
        for name in [
            "../x",
            "logs/../../x",
            "logs//x",
            "/etc/x",
            "logs/.",
            "a\0b",
            "a b",
            "a\nb",
            "",
            &long[..],
            &longest[..],
        ] {
            archive.add_file(name, b"x").unwrap();
        }
        archive
            .add_file("kubernetes/logs/etcd-i-1/etcd.log", b"x")
            .unwrap();
        assert_eq!(archive.finish().unwrap(), 11);
        let names = entries(&path);
        assert_eq!(
            names,
            [
                "stem/kubernetes/logs/etcd-i-1/etcd.log",
                "stem/problems.txt"
            ]
        );
    }

    #[test]
    fn a_file_that_somebody_has_put_there_gets_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar.gz");
        let part = folder.path().join("a.tar.gz.part");
        let elsewhere = folder.path().join("elsewhere");
        fs::write(&elsewhere, b"").unwrap();
        std::os::unix::fs::symlink(&elsewhere, &part).unwrap();
        let archive = Archive::create(&path, "stem", 7).unwrap();
        archive.finish().unwrap();
        assert_eq!(fs::read(&elsewhere).unwrap(), b"");
        fs::remove_file(&path).unwrap();
        fs::write(&part, b"").unwrap();
        fs::set_permissions(&part, fs::Permissions::from_mode(0o666)).unwrap();
        Archive::create(&path, "stem", 7).unwrap().finish().unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
