//! Makes file systems. No other code runs mkfs.

use crate::content::DeviceContent;
use crate::{Error, Host};
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The disk contents that mkfs may overwrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formattable {
    /// The disk is blank: [`DeviceContent::Blank`].
    Blank,
    /// An interrupted mkfs: [`DeviceContent::Unrecognized`], and a record says that the disk was blank before mkfs began.
    HalfMade,
}

impl Formattable {
    fn matches_content(self, content: &DeviceContent) -> bool {
        match self {
            Self::Blank => *content == DeviceContent::Blank,
            Self::HalfMade => *content == DeviceContent::Unrecognized,
        }
    }
}

/// Parameters of a new file system.
#[derive(Clone, Copy, Debug)]
pub struct NewFileSystem<'a> {
    /// Name of the disk for messages: `vol-...`, `/dev/xvdf`.
    pub disk: &'a str,
    /// `ext4`, `xfs`: the suffix of the program `mkfs.KIND`.
    pub kind: &'a str,
    /// Command-line options of mkfs.
    pub options: &'a [&'a str],
    /// Content of the disk when the caller decided to make the file system.
    pub on: Formattable,
    /// Path of a file in which the identity of the disk is stored before mkfs begins ([`Host::has_begun_format`]). `None`: the
    /// caller keeps its own record.
    pub record: Option<&'a str>,
}

impl Host {
    /// Makes a file system on a device, after checking the disk once more through the file descriptor that mkfs writes to: by then
    /// the device name may lead to another disk. `find` returns the device that the disk has now. mkfs opens the disk exclusively
    /// and fails if it is in use.
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
        if !new.on.matches_content(&found) {
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
            self.write_file(record, identity.as_bytes(), 0o644, None)?;
        }
        self.may_change()?;
        let program = format!("mkfs.{}", new.kind);
        let path = held_as.display().to_string();
        let arguments = [new.options, &[&path]].concat();
        let output = match self.run_program(&program, &arguments) {
            Ok(output) => output,
            Err(error) => {
                // mkfs never began, so the next attempt must require a blank disk again.
                new.record
                    .map_or(Ok(()), |record| self.remove_file(record))?;
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
            complaint: output.error_output().to_owned(),
            program,
        })
    }

    /// True if the record names the disk that has this device now. A record of another disk that had the same device name
    /// does not count.
    pub fn has_begun_format(&self, record: &str, device: &Path) -> Result<bool, Error> {
        let Some(began) = self.read_bytes(record)? else {
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
    use crate::{MountEntry, Output, System};
    use std::io;
    use std::sync::{Arc, Mutex};

    const RECORD: &str = "/run/kctl/formatting/dev-xvdf";

    /// Fake programs: blkid finds nothing, and mkfs exits with this code; `None`: mkfs is not installed.
    struct FakeSystem {
        mkfs: Mutex<Option<i32>>,
        calls: Arc<Mutex<Vec<String>>>,
    }

    impl System for FakeSystem {
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

        fn mounts(&self) -> io::Result<Vec<MountEntry>> {
            Ok(Vec::new())
        }

        fn mount(&self, _: &Path, _: &Path, _: &str, _: &str) -> io::Result<()> {
            panic!("nothing is mounted here")
        }

        fn unmount(&self, _: &Path) -> io::Result<()> {
            panic!("nothing is mounted here")
        }

        fn share_mount(&self, _: &Path) -> io::Result<()> {
            panic!("nothing is mounted here")
        }

        fn attached_as(&self, _device: &Path) -> io::Result<Option<String>> {
            Ok(None)
        }
    }

    /// A host with one disk.
    struct TestHost {
        folder: tempfile::TempDir,
        host: Host,
        device: PathBuf,
        calls: Arc<Mutex<Vec<String>>>,
    }

    impl TestHost {
        fn new(content: &[u8], mkfs: Option<i32>) -> Self {
            let folder = tempfile::TempDir::new().unwrap();
            let calls = Arc::<Mutex<Vec<String>>>::default();
            let system = FakeSystem {
                mkfs: Mutex::new(mkfs),
                calls: Arc::clone(&calls),
            };
            let host = Host::new(folder.path(), Arc::new(system));
            host.write_file("/dev/xvdf", content, 0o600, None).unwrap();
            host.write_file("/sys/block/xvdf/diskseq", b"7\n", 0o644, None)
                .unwrap();
            Self {
                device: host.path_below_root("/dev/xvdf"),
                folder,
                host,
                calls,
            }
        }

        fn make_xfs(&self, on: Formattable) -> Result<(), Error> {
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

    /// A record here would make the next run take existing data for an interrupted mkfs.
    #[test]
    fn a_disk_that_is_not_as_it_was_seen_is_left_alone_and_leaves_no_record() {
        for (content, on) in [
            (b"data", Formattable::Blank),
            (b"xfs\0", Formattable::Blank),
            (b"xfs\0", Formattable::HalfMade),
            (b"\0\0\0\0", Formattable::HalfMade),
        ] {
            let host = TestHost::new(content, Some(0));
            let error = host.make_xfs(on).unwrap_err().to_string();
            assert!(error.contains("no file system is made on"), "{error}");
            assert!(!host.ran_mkfs() && !host.has_begun(), "{error}");
            assert_eq!(fs::read(&host.device).unwrap(), content);
        }
    }

    /// blkid of Debian 13 finds nothing if the checksum of the superblock is wrong.
    #[test]
    fn a_damaged_ext4_file_system_is_one_and_is_never_formatted() {
        let mut content = [0; 4096];
        content[1024 + 0x38..][..2].copy_from_slice(&0xef53_u16.to_le_bytes());
        for on in [Formattable::Blank, Formattable::HalfMade] {
            let host = TestHost::new(&content, Some(0));
            let seen = host.host.inspect_device(&host.device).unwrap();
            let kind = "ext4".to_owned();
            assert_eq!(seen, DeviceContent::FileSystem { kind });
            host.make_xfs(on).unwrap_err();
            assert!(!host.ran_mkfs());
        }
    }

    #[test]
    fn a_record_is_of_one_disk_and_only_while_mkfs_may_have_begun() {
        let blank = [0; 4096];
        let failed = TestHost::new(&blank, Some(1));
        assert!(matches!(
            failed.make_xfs(Formattable::Blank),
            Err(Error::FileSystem { .. })
        ));
        assert!(failed.has_begun());
        fs::write(failed.folder.path().join("sys/block/xvdf/diskseq"), "8\n").unwrap();
        assert!(!failed.has_begun(), "another disk has the name");

        let missing = TestHost::new(&blank, None);
        assert!(matches!(
            missing.make_xfs(Formattable::Blank),
            Err(Error::Start { .. })
        ));
        assert!(!missing.has_begun(), "it never began");
    }

    #[test]
    fn a_name_that_leads_to_another_disk_by_now_is_not_formatted() {
        let host = TestHost::new(&[0; 4096], Some(0));
        let other = host.device.with_file_name("xvdg");
        let new = NewFileSystem {
            disk: "vol-0a",
            kind: "xfs",
            options: &[],
            on: Formattable::Blank,
            record: None,
        };
        for now in [None, Some(other)] {
            let find = || Ok(now.clone());
            let made = host.host.make_file_system(&host.device, find, &new);
            assert!(matches!(made, Err(Error::OtherDisk { .. })), "{made:?}");
        }
        assert!(!host.ran_mkfs());
    }
}
