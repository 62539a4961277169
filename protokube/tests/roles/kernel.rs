//! Tests with a real file system on a loop device. Skipped without root or loop devices.

use etcd_member::EtcdDisk;
use etcd_rules::{FileSystemContent, VolumeContent};
use host::{Host, LocalSystem, is_outgrown};
use rustix::fs::OFlags;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use tempfile::TempDir;

pub const PROGRAMS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const DISK: EtcdDisk<'static> = EtcdDisk {
    volume: "vol-0a",
    requested_device: "/dev/xvdu",
    prefix: "etcd",
};

pub fn run(program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", PROGRAMS);
    command.output().unwrap()
}

/// A host in a folder whose disk is a loop device.
struct LoopDevice {
    folder: TempDir,
    device: PathBuf,
}

impl LoopDevice {
    fn new() -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("file");
        fs::File::create(&file).unwrap().set_len(64 << 20).unwrap();
        let made = run("losetup", &["-f", "--show", file.to_str().unwrap()]);
        if !made.status.success() {
            eprintln!("SKIPPED: {}", String::from_utf8_lossy(&made.stderr));
            return None;
        }
        let device = PathBuf::from(String::from_utf8(made.stdout).unwrap().trim());
        fs::create_dir_all(folder.path().join("dev")).unwrap();
        std::os::unix::fs::symlink(&device, folder.path().join("dev/xvdu")).unwrap();
        Some(Self { folder, device })
    }

    fn local_host(&self) -> Host {
        let system = LocalSystem::with_programs(PROGRAMS);
        Host::new(self.folder.path(), Arc::new(system))
    }

    fn mount_path(&self) -> PathBuf {
        self.folder.path().join("mnt/master-vol-0a")
    }

    /// Fills the disk as etcd would: as root without the capability that containers lack.
    fn fill_disk(&self, mib: u64) -> bool {
        let to = format!("of={}", self.mount_path().join("etcd").display());
        let count = format!("count={mib}");
        let dropped = ["--bounding-set=-sys_resource", "--inh-caps=-sys_resource"];
        let written = ["dd", "if=/dev/zero", &to, "bs=1M", &count, "conv=fsync"];
        run("setpriv", &[&dropped[..], &written].concat())
            .status
            .success()
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let device = self.device.to_str().unwrap();
        run("umount", &[self.mount_path().to_str().unwrap()]);
        run("losetup", &["-d", device]);
    }
}

fn mount_options(mount_point: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let needle = format!(" {} ", mount_point.display());
    mounts
        .lines()
        .find(|line| line.contains(&needle))
        .unwrap()
        .to_owned()
}

/// True if this process has `CAP_SYS_RESOURCE`, which is needed to use the reserved blocks of ext4 and to grow a mounted file system.
/// Some containers lack it; then parts of the tests are skipped.
fn has_capability() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let has = u64::from_str_radix(line.unwrap().trim(), 16).unwrap() & (1 << 24) != 0;
    if !has {
        eprintln!("SKIPPED: the reserve, and growing what is mounted: CAP_SYS_RESOURCE is missing");
    }
    has
}

#[test]
fn on_a_volume_that_etcd_has_filled_protokube_writes_and_once_enlarged_etcd_does_too() {
    let Some(disk) = LoopDevice::new() else {
        return;
    };
    let (host, device) = (disk.local_host(), disk.device.as_path());
    let look = || DISK.inspect(&host, device).unwrap();
    DISK.make_file_system(&host, device, &VolumeContent::Blank)
        .unwrap();
    assert_eq!(
        look(),
        VolumeContent::FileSystem(FileSystemContent::Nothing)
    );
    let options = mount_options(&disk.mount_path());
    assert!(
        options.contains("errors=remount-ro") && options.contains("resuid=65534"),
        "{options}"
    );
    assert!(!disk.fill_disk(64), "it is full");
    if has_capability() {
        let text = "x".repeat(512 << 10);
        let written = host.write_changed("/mnt/master-vol-0a/manifest", &text, 0o440);
        assert!(written.unwrap(), "protokube's reserve");
    }
    for (mib, mounted) in [(256, false), (512, true)] {
        let file = disk.folder.path().join("file");
        let file = fs::File::options().write(true).open(file).unwrap();
        file.set_len(mib << 20).unwrap();
        let seen = run("losetup", &["-c", device.to_str().unwrap()]);
        assert!(seen.status.success());
        if mounted && !has_capability() {
            return;
        }
        assert!(is_outgrown(device).unwrap());
        if !mounted {
            DISK.unmount_disk(&host).unwrap();
        }
        DISK.grow_file_system(&host, device).unwrap();
        assert!(!is_outgrown(device).unwrap());
        look();
        assert!(disk.fill_disk(mib * 3 / 4), "there is room");
    }
}

#[test]
fn what_somebody_else_has_mounted_is_not_formatted() {
    let Some(disk) = LoopDevice::new() else {
        return;
    };
    let (host, device) = (disk.local_host(), disk.device.as_path());
    DISK.make_file_system(&host, device, &VolumeContent::Blank)
        .unwrap();
    let elsewhere = disk.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let paths = [device, &elsewhere].map(|path| path.to_str().unwrap());
    assert!(run("mount", &paths).status.success());
    let seen = DISK.inspect(&host, device);
    let mounted = VolumeContent::FileSystem(FileSystemContent::Nothing);
    let made = DISK.make_file_system(&host, device, &mounted);
    run("umount", &[paths[1]]);
    let why = made.unwrap_err().to_string();
    assert!(why.contains("no file system is made on"), "{why}");
    let seen = format!("{:?}", seen.unwrap());
    assert!(
        seen.contains("Damaged") && seen.contains("is mounted"),
        "{seen}"
    );
}

#[test]
fn a_blank_disk_that_somebody_else_has_for_itself_is_not_formatted() {
    let Some(disk) = LoopDevice::new() else {
        return;
    };
    let (host, device) = (disk.local_host(), disk.device.as_path());
    let exclusive = i32::try_from(OFlags::EXCL.bits()).unwrap();
    let mut options = fs::File::options();
    let taken = options.read(true).custom_flags(exclusive).open(device);
    let made = DISK.make_file_system(&host, device, &VolumeContent::Blank);
    drop(taken.unwrap());
    let why = made.unwrap_err().to_string();
    assert!(why.contains("will not make a filesystem"), "{why}");
    assert_eq!(DISK.inspect(&host, device).unwrap(), VolumeContent::Blank);
}
