//! What a disk holds, by the machine's own tools on files: no disk of the machine is touched.

use crate::machine::{Links, SharedFuse};
use model::etcd::{Content, Inside};
use protokube::host::{Disk, Host};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

const DISK: Disk<'static> = Disk {
    volume: "vol-0a",
    asked: "/dev/xvdu",
    prefix: "etcd",
};

/// A machine with one disk of 16 MiB of zeros, seen as it was asked for, and the machine's own programs.
fn machine() -> (TempDir, Host, PathBuf) {
    let folder = TempDir::new().unwrap();
    fs::create_dir_all(folder.path().join("dev")).unwrap();
    let device = folder.path().join("dev/xvdu");
    fs::File::create(&device)
        .unwrap()
        .set_len(16 << 20)
        .unwrap();
    let mounts = Links {
        root: folder.path().to_owned(),
        fuse: SharedFuse::default(),
        kubelet: None,
    };
    let programs = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let host = Host::at(folder.path(), programs, Arc::new(mounts));
    let device = host.device(&DISK).unwrap();
    (folder, host, device)
}

#[test]
fn a_disk_of_zeros_is_blank_and_with_a_file_system_it_is_empty() {
    let (_folder, host, device) = machine();
    assert_eq!(host.look(&DISK, &device).unwrap(), Content::Blank);
    host.format(&DISK, &device).unwrap();
    let made = Content::FileSystem(Inside::Nothing);
    assert!(!host.mounted(&DISK, &device).unwrap());
    assert_eq!(host.look(&DISK, &device).unwrap(), made);
    assert!(host.mounted(&DISK, &device).unwrap());
    assert_eq!(host.look(&DISK, &device).unwrap(), made);
    assert!(
        host.format(&DISK, &device).is_err(),
        "not while it is mounted"
    );
    host.grow(&DISK, &device).unwrap();
}

#[test]
fn anything_on_a_disk_makes_it_not_blank() {
    let (_folder, host, device) = machine();
    let file = fs::File::options().write(true).open(&device).unwrap();
    file.write_all_at(b"x", (1 << 20) - 1).unwrap();
    assert_eq!(host.look(&DISK, &device).unwrap(), Content::Unrecognized);
    let swap = Command::new("/usr/sbin/mkswap")
        .arg(&device)
        .output()
        .unwrap();
    assert!(swap.status.success());
    let content = host.look(&DISK, &device).unwrap();
    assert_eq!(content, Content::Other("swap".into()));
}

#[test]
fn a_disk_that_cannot_be_read_is_an_error_and_not_blank() {
    let (_folder, host, device) = machine();
    fs::remove_file(&device).unwrap();
    let error = format!("{:#}", host.look(&DISK, &device).unwrap_err());
    assert!(error.contains("vol-0a"), "{error}");
    assert_eq!(host.device(&DISK), None);
}

#[test]
fn a_disk_is_found_by_its_serial_number_before_udev_names_it() {
    let (folder, host, _) = machine();
    let serial = folder.path().join("sys/block/nvme3n1/device");
    fs::create_dir_all(&serial).unwrap();
    fs::write(serial.join("serial"), "vol0a\n").unwrap();
    let device = folder.path().join("dev/nvme3n1");
    fs::write(&device, "").unwrap();
    assert_eq!(host.device(&DISK), Some(device.canonicalize().unwrap()));
}
