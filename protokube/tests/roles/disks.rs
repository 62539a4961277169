//! Inspects disk images with the tools of this host. No disk of the host is touched.

use crate::test_host::{HostWithLinks, SharedFuse};
use etcd_member::EtcdDisk;
use etcd_rules::{FileSystemContent, VolumeContent};
use host::{Host, LocalSystem, is_outgrown};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

const DISK: EtcdDisk<'static> = EtcdDisk {
    volume: "vol-0a",
    requested_device: "/dev/xvdu",
    prefix: "etcd",
};

/// A host with one disk of 16 MiB of zeros, found by its requested device name, and this host's programs.
fn host_with_disk() -> (TempDir, Host, PathBuf) {
    let folder = TempDir::new().unwrap();
    fs::create_dir_all(folder.path().join("dev")).unwrap();
    let device = folder.path().join("dev/xvdu");
    fs::File::create(&device)
        .unwrap()
        .set_len(16 << 20)
        .unwrap();
    let host = Host::new(folder.path(), Arc::new(links_system(folder.path())));
    let device = DISK.find_device(&host).unwrap().unwrap();
    (folder, host, device)
}

fn links_system(root: &Path) -> HostWithLinks {
    let programs = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    HostWithLinks {
        root: root.to_owned(),
        programs: LocalSystem::with_programs(programs),
        fuse: SharedFuse::default(),
        kubelet: None,
        flushed: Arc::default(),
    }
}

#[test]
fn a_disk_of_zeros_is_blank_and_with_a_file_system_it_is_empty() {
    let (_folder, host, device) = host_with_disk();
    assert_eq!(DISK.inspect(&host, &device).unwrap(), VolumeContent::Blank);
    DISK.make_file_system(&host, &device, &VolumeContent::Blank)
        .unwrap();
    let made = VolumeContent::FileSystem(FileSystemContent::Nothing);
    assert!(!DISK.is_mounted(&host, &device).unwrap());
    assert_eq!(DISK.inspect(&host, &device).unwrap(), made);
    assert!(DISK.is_mounted(&host, &device).unwrap());
    assert_eq!(DISK.inspect(&host, &device).unwrap(), made);
    assert!(
        DISK.make_file_system(&host, &device, &made).is_err(),
        "not while it is mounted"
    );
}

/// Reads `s_r_blocks_count_lo` or `s_blocks_count_lo`, whose offsets are in the kernel's documentation of ext4.
fn read_le32(device: &Path, offset: u64) -> u32 {
    let mut word = [0; 4];
    let file = fs::File::open(device).unwrap();
    file.read_exact_at(&mut word, 1024 + offset).unwrap();
    u32::from_le_bytes(word)
}

#[test]
fn a_file_system_fills_its_disk_but_for_a_small_reserve_and_follows_it() {
    let (_folder, host, device) = host_with_disk();
    DISK.make_file_system(&host, &device, &VolumeContent::Blank)
        .unwrap();
    let blocks = || read_le32(&device, 4);
    let (before, reserve) = (blocks(), read_le32(&device, 8));
    assert!(
        reserve > 0 && reserve < before / 50,
        "{reserve} of {before}"
    );
    assert!(!is_outgrown(&device).unwrap());
    let file = fs::File::options().write(true).open(&device).unwrap();
    file.set_len(64 << 20).unwrap();
    assert!(is_outgrown(&device).unwrap());
    DISK.grow_file_system(&host, &device).unwrap();
    assert_eq!(blocks(), 4 * before);
    assert!(!is_outgrown(&device).unwrap());
}

/// The disk changes between its inspection and mkfs.
#[test]
fn a_disk_that_has_changed_or_is_another_is_not_formatted() {
    let (_folder, host, device) = host_with_disk();
    let file = fs::File::options().write(true).open(&device).unwrap();
    file.write_all_at(b"data", 4096).unwrap();
    let before = fs::read(&device).unwrap();
    let error = DISK
        .make_file_system(&host, &device, &VolumeContent::Blank)
        .unwrap_err();
    assert!(error.to_string().contains("Unrecognized"), "{error}");
    assert_eq!(fs::read(&device).unwrap(), before);
    fs::remove_file(&device).unwrap();
    let other = device.with_file_name("nvme9n1");
    fs::write(&other, [0; 4096]).unwrap();
    std::os::unix::fs::symlink(&other, &device).unwrap();
    let error = DISK
        .make_file_system(&host, &device, &VolumeContent::Blank)
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("does not belong to vol-0a any more"),
        "{error}"
    );
    assert_eq!(fs::read(&other).unwrap(), [0; 4096]);
}

#[test]
fn anything_on_a_disk_makes_it_not_blank() {
    let (_folder, host, device) = host_with_disk();
    let file = fs::File::options().write(true).open(&device).unwrap();
    file.write_all_at(b"x", (1 << 20) - 1).unwrap();
    assert_eq!(
        DISK.inspect(&host, &device).unwrap(),
        VolumeContent::Unrecognized
    );
    let swap = Command::new("/usr/sbin/mkswap")
        .arg(&device)
        .output()
        .unwrap();
    assert!(swap.status.success());
    let content = DISK.inspect(&host, &device).unwrap();
    assert_eq!(content, VolumeContent::Other("swap".into()));
}

#[test]
fn a_disk_that_cannot_be_read_is_an_error_and_not_blank() {
    let (_folder, host, device) = host_with_disk();
    fs::remove_file(&device).unwrap();
    let error = format!("{:#}", DISK.inspect(&host, &device).unwrap_err());
    assert!(error.contains("vol-0a"), "{error}");
    assert_eq!(DISK.find_device(&host).unwrap(), None);
}

#[test]
fn a_disk_is_found_by_its_serial_number_before_udev_names_it() {
    let (folder, host, _) = host_with_disk();
    let serial = folder.path().join("sys/block/nvme3n1/device");
    fs::create_dir_all(&serial).unwrap();
    fs::write(serial.join("serial"), "vol0a\n").unwrap();
    let device = folder.path().join("dev/nvme3n1");
    fs::write(&device, "").unwrap();
    let found = DISK.find_device(&host).unwrap();
    assert_eq!(found, Some(device.canonicalize().unwrap()));
}
