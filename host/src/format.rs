//! Making a file system on a disk: the only code that runs mkfs.

use crate::content::DeviceContent;
use crate::{Error, Host};
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a disk has to hold for a file system to be made on it: nothing else is ever written over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formattable {
    /// Nothing: [`DeviceContent::Blank`].
    Blank,
    /// A file system half made: [`DeviceContent::Unrecognized`], and the caller has a record that the disk was blank before.
    HalfMade,
}

impl Formattable {
    fn is(self, content: &DeviceContent) -> bool {
        match self {
            Self::Blank => *content == DeviceContent::Blank,
            Self::HalfMade => *content == DeviceContent::Unrecognized,
        }
    }
}

/// A file system to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewFileSystem<'a> {
    /// The disk as operators know it: `vol-...`, `/dev/xvdf`.
    pub disk: &'a str,
    /// `ext4`, `xfs`: the program is `mkfs.KIND`.
    pub kind: &'a str,
    /// Options of that program.
    pub options: &'a [&'a str],
    /// What the disk held when this was decided.
    pub on: Formattable,
    /// A file that says, from before mkfs begins, on which disk it did ([`Host::has_begun_format`]). `None`: the caller has a
    /// record of its own.
    pub record: Option<&'a str>,
}

impl Host {
    /// Makes a file system on a device. The disk is looked at once more, through one descriptor, by which mkfs reaches it too:
    /// the name may lead to another disk by then, and `find` says which device the disk has now. mkfs itself takes the disk
    /// for itself alone, and fails where somebody has it.
    pub fn make_file_system(
        &self,
        device: &Path,
        find: impl FnOnce() -> Result<Option<PathBuf>, Error>,
        new: &NewFileSystem<'_>,
    ) -> Result<(), Error> {
        let opened = OpenOptions::new().read(true).write(true).open(device);
        let held = opened.map_err(Error::of_file("open", device))?;
        if find()?.as_deref() != Some(device) || !is_same(&held, device)? {
            return Err(Error::OtherDisk {
                disk: new.disk.to_owned(),
                device: device.to_owned(),
            });
        }
        let held_as = PathBuf::from(format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            held.as_raw_fd()
        ));
        let found = self.inspect_device(&held_as)?;
        if !new.on.is(&found) {
            return Err(Error::Changed {
                disk: new.disk.to_owned(),
                expected: new.on,
                found,
            });
        }
        self.run_mkfs(device, &held_as, new)
    }

    fn run_mkfs(
        &self,
        device: &Path,
        held_as: &Path,
        new: &NewFileSystem<'_>,
    ) -> Result<(), Error> {
        if let Some(record) = new.record
            && let Some(identity) = self.identify_disk(device)?
        {
            self.write(record, identity.as_bytes(), 0o644, None)?;
        }
        self.may_change()?;
        let program = format!("mkfs.{}", new.kind);
        let path = held_as.display().to_string();
        let arguments = [new.options, &[&path]].concat();
        let output = match self.run(&program, &arguments) {
            Ok(output) => output,
            Err(error) => {
                // mkfs never began: whoever comes next looks for blank again.
                new.record.map_or(Ok(()), |record| self.remove(record))?;
                return Err(error);
            }
        };
        if output.is_success() {
            return Ok(());
        }
        Err(Error::FileSystem {
            doing: "make a file system on",
            disk: new.disk.to_owned(),
            device: device.to_owned(),
            complaint: output.complaint().to_owned(),
            program,
        })
    }

    /// True if a record says that mkfs began on the disk that has this device now. Of another disk that has the name now it says
    /// nothing.
    pub fn has_begun_format(&self, record: &str, device: &Path) -> Result<bool, Error> {
        let Some(began) = self.read(record)? else {
            return Ok(false);
        };
        let identity = self.identify_disk(device)?;
        Ok(identity.is_some_and(|identity| identity.as_bytes() == began))
    }
}

fn is_same(held: &File, device: &Path) -> Result<bool, Error> {
    let failed = Error::of_file("read", device);
    let held = held.metadata().map_err(&failed)?;
    let named = fs::metadata(device).map_err(failed)?;
    Ok((held.dev(), held.ino()) == (named.dev(), named.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mounted, Output, System};
    use std::io;
    use std::sync::{Arc, Mutex};

    const RECORD: &str = "/run/kctl/formatting/dev-xvdf";

    /// Programs that are played: blkid finds nothing, and mkfs ends with that code; `None`: it is not installed.
    struct Played {
        mkfs: Mutex<Option<i32>>,
        calls: Arc<Mutex<Vec<String>>>,
    }

    impl System for Played {
        fn run(&self, program: &str, arguments: &[&str]) -> io::Result<Output> {
            let last = arguments.last().unwrap();
            let content = fs::read(last).unwrap();
            self.calls.lock().unwrap().push(program.to_owned());
            let code = match program {
                "blkid" if content.starts_with(b"xfs") => Some(0),
                "blkid" => Some(2),
                _ => Some((*self.mkfs.lock().unwrap()).ok_or(io::ErrorKind::NotFound)?),
            };
            let stdout = "TYPE=xfs\n".to_owned();
            Ok(Output {
                code,
                stdout,
                ..Output::default()
            })
        }

        fn mounts(&self) -> io::Result<Vec<Mounted>> {
            Ok(Vec::new())
        }

        fn mount(&self, _: &Path, _: &Path, _: &str, _: &str) -> io::Result<()> {
            panic!("nothing is mounted here")
        }

        fn unmount(&self, _: &Path) -> io::Result<()> {
            panic!("nothing is mounted here")
        }

        fn share(&self, _: &Path) -> io::Result<()> {
            panic!("nothing is mounted here")
        }

        fn attached_as(&self, _device: &Path) -> io::Result<Option<String>> {
            Ok(None)
        }
    }

    /// A machine whose only disk has that content.
    struct Machine {
        folder: tempfile::TempDir,
        host: Host,
        device: PathBuf,
        calls: Arc<Mutex<Vec<String>>>,
    }

    impl Machine {
        fn new(content: &[u8], mkfs: Option<i32>) -> Self {
            let folder = tempfile::TempDir::new().unwrap();
            let calls = Arc::<Mutex<Vec<String>>>::default();
            let system = Played {
                mkfs: Mutex::new(mkfs),
                calls: Arc::clone(&calls),
            };
            let host = Host::new(folder.path(), Arc::new(system));
            host.write("/dev/xvdf", content, 0o600, None).unwrap();
            host.write("/sys/block/xvdf/diskseq", b"7\n", 0o644, None)
                .unwrap();
            Self {
                device: host.at("/dev/xvdf"),
                folder,
                host,
                calls,
            }
        }

        fn make(&self, on: Formattable) -> Result<(), Error> {
            let new = NewFileSystem {
                disk: "/dev/xvdf",
                kind: "xfs",
                options: &[],
                on,
                record: Some(RECORD),
            };
            let find = || self.host.device_attached_as("/dev/xvdf");
            self.host.make_file_system(&self.device, find, &new)
        }

        fn has_begun(&self) -> bool {
            self.host.has_begun_format(RECORD, &self.device).unwrap()
        }

        fn ran_mkfs(&self) -> bool {
            self.calls.lock().unwrap().contains(&"mkfs.xfs".to_owned())
        }
    }

    /// The record would let the next look take somebody's data for a file system half made.
    #[test]
    fn a_disk_that_is_not_as_it_was_seen_is_left_alone_and_leaves_no_record() {
        for (content, on) in [
            (b"data", Formattable::Blank),
            (b"xfs\0", Formattable::Blank),
            (b"xfs\0", Formattable::HalfMade),
            (b"\0\0\0\0", Formattable::HalfMade),
        ] {
            let machine = Machine::new(content, Some(0));
            let error = machine.make(on).unwrap_err().to_string();
            assert!(error.contains("no file system is made on it"), "{error}");
            assert!(!machine.ran_mkfs() && !machine.has_begun(), "{error}");
            assert_eq!(fs::read(&machine.device).unwrap(), content);
        }
    }

    #[test]
    fn a_record_is_of_one_disk_and_only_while_mkfs_may_have_begun() {
        let blank = [0; 4096];
        let failed = Machine::new(&blank, Some(1));
        assert!(matches!(
            failed.make(Formattable::Blank),
            Err(Error::FileSystem { .. })
        ));
        assert!(failed.has_begun());
        fs::write(failed.folder.path().join("sys/block/xvdf/diskseq"), "8\n").unwrap();
        assert!(!failed.has_begun(), "another disk has the name");

        let missing = Machine::new(&blank, None);
        assert!(matches!(
            missing.make(Formattable::Blank),
            Err(Error::Start { .. })
        ));
        assert!(!missing.has_begun(), "it never began");
    }

    #[test]
    fn a_name_that_leads_to_another_disk_by_now_is_not_formatted() {
        let machine = Machine::new(&[0; 4096], Some(0));
        let other = machine.device.with_file_name("xvdg");
        let new = NewFileSystem {
            disk: "vol-0a",
            kind: "xfs",
            options: &[],
            on: Formattable::Blank,
            record: None,
        };
        for now in [None, Some(other)] {
            let find = || Ok(now.clone());
            let made = machine.host.make_file_system(&machine.device, find, &new);
            assert!(matches!(made, Err(Error::OtherDisk { .. })), "{made:?}");
        }
        assert!(!machine.ran_mkfs());
    }
}
