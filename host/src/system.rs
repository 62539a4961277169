//! Access to programs, mounts and NVMe disks of the instance, as a trait that tests replace.

use crate::mounts::{MountEntry, flags_and_data, parse_mounts};
use nvme_amz::{Model, Nvme};
use rustix::fs::{MemfdFlags, memfd_create};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use sys_mount::{Mount, MountFlags, PropagationType, UnmountFlags};

/// Folders of programs. The `PATH` of an image may lack those of the administrator, such as modprobe.
const PROGRAMS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Result of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Exit code; `None` if a signal ended the program.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// True if the program exited with 0.
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }

    /// Standard error, or standard output if that is empty, without surrounding blanks.
    pub fn error_output(&self) -> &str {
        match self.stderr.trim() {
            "" => self.stdout.trim(),
            errors => errors,
        }
    }
}

/// Space of a file system, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// Its size.
    pub total: u64,
    /// What processes without privileges can still write.
    pub free: u64,
}

/// Programs, mounts and disks of an instance.
pub trait System: Send + Sync {
    /// Runs a program and waits for its end. An error means that it could not be started.
    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<Output>;

    /// All mounts, oldest first.
    fn mounts(&self) -> io::Result<Vec<MountEntry>>;

    /// Mounts the file system of a device at a folder, with options of mount(8).
    fn mount(&self, device: &Path, folder: &Path, kind: &str, options: &str) -> io::Result<()>;

    /// Detaches the mount at a folder, even while it is in use.
    fn unmount(&self, folder: &Path) -> io::Result<()>;

    /// Makes a mount shared, recursively.
    fn share_mount(&self, mount_point: &Path) -> io::Result<()>;

    /// The device name under which AWS attached an NVMe disk, with or without `/dev/`; `None` if it is not an EBS volume.
    fn attached_as(&self, device: &Path) -> io::Result<Option<String>>;

    /// Space of the file system that a folder is on.
    fn disk_space(&self, folder: &Path) -> io::Result<DiskSpace> {
        let status = rustix::fs::statvfs(folder)?;
        let bytes = |blocks: u64| blocks.saturating_mul(status.f_frsize);
        Ok(DiskSpace {
            total: bytes(status.f_blocks),
            free: bytes(status.f_bavail),
        })
    }

    /// Flushes the file system that a folder is on.
    fn flush(&self, folder: &Path) -> io::Result<()> {
        Ok(rustix::fs::syncfs(File::open(folder)?)?)
    }
}

/// The instance that this process runs on.
#[derive(Clone, Debug)]
pub struct LocalSystem {
    programs: Option<String>,
    root: PathBuf,
}

impl Default for LocalSystem {
    /// Looks programs up in the `PATH` of the agent, and then in the folders of the system.
    fn default() -> Self {
        Self {
            programs: None,
            root: "/".into(),
        }
    }
}

impl LocalSystem {
    /// Looks programs up in these folders (format of `PATH`), whatever the agent's environment says.
    pub fn with_programs(programs: impl Into<String>) -> Self {
        Self {
            programs: Some(programs.into()),
            ..Self::default()
        }
    }

    /// Reads the mount table below this root folder, which is `/` except in tests.
    pub fn with_root(root: impl Into<PathBuf>) -> Self {
        Self {
            programs: None,
            root: root.into(),
        }
    }

    /// Folders with programs, in the format of `PATH`.
    fn search_path(&self) -> OsString {
        if let Some(programs) = &self.programs {
            return programs.into();
        }
        let mut path = std::env::var_os("PATH").unwrap_or_default();
        if !path.is_empty() {
            path.push(":");
        }
        path.push(PROGRAMS);
        path
    }

    /// Starts a program, which outlives the agent (protokube's unit has `KillMode=process`), because fsck and resize2fs must not be
    /// interrupted. Its output goes to memory files: writing to a pipe whose reader has exited would end it with `SIGPIPE`.
    fn spawn_program(&self, program: &str, arguments: &[&str]) -> io::Result<Running> {
        let (output, errors) = (create_memory_file()?, create_memory_file()?);
        let mut command = Command::new(program);
        command
            .args(arguments)
            // Output is parsed, so it must not depend on the locale; and questions would wait for ever.
            .env("LC_ALL", "C")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env("PATH", self.search_path())
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(errors.try_clone()?);
        // Libraries that the image adds to its own programs may break those of the distribution.
        let names = std::env::vars_os().map(|(name, _)| name);
        for library in names.filter(|name| name.as_encoded_bytes().starts_with(b"LD_")) {
            command.env_remove(library);
        }
        Ok(Running {
            child: command.spawn()?,
            output,
            errors,
        })
    }
}

/// A running program and its output files.
struct Running {
    child: Child,
    output: File,
    errors: File,
}

fn create_memory_file() -> io::Result<File> {
    Ok(memfd_create("output", MemfdFlags::CLOEXEC)?.into())
}

fn read_whole(mut file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl System for LocalSystem {
    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<Output> {
        let mut running = self.spawn_program(program, arguments)?;
        let status = running.child.wait()?;
        Ok(Output {
            code: status.code(),
            stdout: read_whole(running.output)?,
            stderr: read_whole(running.errors)?,
        })
    }

    fn mounts(&self) -> io::Result<Vec<MountEntry>> {
        // Mount points and options may be in any encoding.
        let table = fs::read(self.root.join("proc/self/mountinfo"))?;
        Ok(parse_mounts(&String::from_utf8_lossy(&table), &self.root))
    }

    fn mount(&self, device: &Path, folder: &Path, kind: &str, options: &str) -> io::Result<()> {
        let (flags, data) = flags_and_data(options);
        Mount::builder()
            .fstype(kind)
            .flags(flags)
            .data(&data)
            .mount(device, folder)
            .map(drop)
    }

    fn unmount(&self, folder: &Path) -> io::Result<()> {
        sys_mount::unmount(folder, UnmountFlags::DETACH)
    }

    fn share_mount(&self, mount_point: &Path) -> io::Result<()> {
        // mount(2) ignores device and type when it changes propagation.
        Mount::builder()
            .fstype("none")
            .flags(MountFlags::REC | MountFlags::from_bits_retain(PropagationType::SHARED.bits()))
            .mount("", mount_point)
            .map(drop)
    }

    fn attached_as(&self, device: &Path) -> io::Result<Option<String>> {
        // EBS reports the name in its response to Identify Controller (EC2 user guide, "Identify the EBS device").
        match Nvme::try_from(File::open(device)?) {
            Ok(disk) if matches!(disk.model, Model::AmazonElasticBlockStore) => {
                Ok(disk.names.device_name)
            }
            Ok(_)
            | Err(
                nvme_amz::Error::UnrecognizedVendorId(_) | nvme_amz::Error::UnrecognizedModel(_),
            ) => Ok(None),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Host;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn programs_of_the_system_are_found_whatever_path_the_image_has() {
        let path = LocalSystem::default().search_path();
        assert!(path.to_str().unwrap().ends_with(PROGRAMS));
        let own = LocalSystem::with_programs("/opt/bin").search_path();
        assert_eq!(own, "/opt/bin");
    }

    #[test]
    fn what_a_program_says_is_known_when_it_ends() {
        let host = Host::new("/", Arc::new(LocalSystem::default()));
        let said = "echo much; echo less >&2; exit 3";
        let ran = host.run_program("sh", &["-c", said]).unwrap();
        let said = (ran.code, &*ran.stdout, ran.error_output());
        assert_eq!(said, (Some(3), "much\n", "less"));
        let error = host
            .run_program("no-such-program", &[])
            .unwrap_err()
            .to_string();
        assert!(error.contains("no-such-program: is it installed?"));
    }

    /// The reader of the output is gone, as after the end of the agent.
    #[test]
    fn a_program_goes_on_to_its_end_without_anybody_who_listens() {
        let folder = tempfile::TempDir::new().unwrap();
        let [go, done] = ["go", "done"].map(|name| folder.path().join(name));
        let script = "until [ -e \"$0\" ]; do sleep 0.01; done; echo on; echo on >&2; : > \"$1\"";
        let arguments = ["-c", script, go.to_str().unwrap(), done.to_str().unwrap()];
        let running = LocalSystem::default()
            .spawn_program("sh", &arguments)
            .unwrap();
        let mut child = running.child;
        drop((running.output, running.errors));
        std::fs::write(go, "").unwrap();
        while child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(done.exists(), "it was ended by what it said");
    }

    /// In a mount namespace of its own, so that nothing of this machine changes.
    #[test]
    fn private_mounts_become_shared_with_all_that_is_below() {
        const INSIDE: &str = "KCTL_TEST_INSIDE";
        const OWN: [&str; 3] = ["--mount", "--propagation", "private"];
        if std::env::var_os(INSIDE).is_none() {
            let unshare = || {
                let mut command = Command::new("unshare");
                command.args(OWN);
                command
            };
            let mount = ["mount", "-t", "tmpfs", "tmpfs", "/tmp"];
            if !unshare()
                .args(mount)
                .output()
                .is_ok_and(|ran| ran.status.success())
            {
                eprintln!("SKIPPED: nobody may mount anything here");
                return;
            }
            let name = "system::tests::private_mounts_become_shared_with_all_that_is_below";
            let mut command = unshare();
            command.arg(std::env::current_exe().unwrap());
            command.args(["--exact", name]).env(INSIDE, "1");
            let ran = command.output().unwrap();
            let said = String::from_utf8_lossy(&ran.stdout);
            assert!(ran.status.success() && said.contains("1 passed"), "{said}");
            return;
        }
        let folder = tempfile::TempDir::new().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let mounts = ["above", "above/below"].map(|name| format!("{}/{name}", root.display()));
        let host = Host::new("/", Arc::new(LocalSystem::default()));
        for mount in &mounts {
            let mounted = host.mount_device(Path::new("tmpfs"), mount, "tmpfs", "");
            mounted.unwrap();
        }
        let shared = || {
            let seen = |mount: &String| host.mounted_at(mount).unwrap().unwrap().shared;
            mounts.each_ref().map(seen)
        };
        assert_eq!(shared(), [false, false]);
        host.share_mount(Path::new(&mounts[0])).unwrap();
        assert_eq!(shared(), [true, true]);
        host.unmount_folder(&mounts[0]).unwrap();
    }
}
