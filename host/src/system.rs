//! What is asked of a machine besides files: programs, mounts, and disks' own names.

use crate::mounts::{Mounted, flags_and_data, parse_mounts};
use nvme_amz::{Model, Nvme};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use sys_mount::{Mount, MountFlags, PropagationType, UnmountFlags};

/// What a program came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Its exit code; `None`: a signal ended it.
    pub code: Option<i32>,
    /// What it wrote on standard output.
    pub stdout: String,
    /// What it wrote on standard error.
    pub stderr: String,
}

impl Output {
    /// True if it exited with 0.
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }

    /// What it wrote on standard error, or on standard output where that is empty.
    pub fn complaint(&self) -> &str {
        match self.stderr.trim() {
            "" => self.stdout.trim(),
            errors => errors,
        }
    }
}

/// A machine's programs, mounts and disks. Tests have their own.
pub trait System: Send + Sync {
    /// Runs a program to its end. An error: it could not be started.
    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<Output>;

    /// All mounts, in the order in which they were made.
    fn mounts(&self) -> io::Result<Vec<Mounted>>;

    /// Mounts the file system of a device at a folder, with options of mount(8).
    fn mount(&self, device: &Path, folder: &Path, kind: &str, options: &str) -> io::Result<()>;

    /// Takes what is mounted at a folder from there, also while it is in use.
    fn unmount(&self, folder: &Path) -> io::Result<()>;

    /// Lets mounts below that mount point be seen in other mount namespaces.
    fn share(&self, mount_point: &Path) -> io::Result<()>;

    /// The name under which AWS attached an NVMe disk, with `/dev/` or without; `None` if it is no volume of EBS.
    fn attached_as(&self, device: &Path) -> io::Result<Option<String>>;
}

/// The machine that this runs on.
#[derive(Clone, Debug)]
pub struct LocalSystem {
    programs: Option<String>,
    root: PathBuf,
}

impl Default for LocalSystem {
    /// Programs are looked up where the environment of the agent says.
    fn default() -> Self {
        Self {
            programs: None,
            root: "/".into(),
        }
    }
}

impl LocalSystem {
    /// Programs are looked up in these folders (`PATH`), whatever the environment of the agent says.
    pub fn with_programs(programs: impl Into<String>) -> Self {
        Self {
            programs: Some(programs.into()),
            ..Self::default()
        }
    }

    /// The table of mounts is that of a machine below a folder, which is `/` except in tests.
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Self {
            programs: None,
            root: root.into(),
        }
    }

    /// Begins a program. It goes on where the agent ends (protokube's unit says `KillMode=process`): what repairs or grows a
    /// file system must not be cut off in the middle. So it writes to memory of its own: a pipe without a reader would end
    /// it at the first word (`SIGPIPE`).
    fn begin(&self, program: &str, arguments: &[&str]) -> io::Result<Running> {
        let (output, errors) = (memory()?, memory()?);
        let mut command = Command::new(program);
        command
            .args(arguments)
            // Texts that are read must not depend on the machine's language, and nobody is there to answer questions.
            .env("LC_ALL", "C")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(errors.try_clone()?);
        if let Some(programs) = &self.programs {
            command.env("PATH", programs);
        }
        Ok(Running {
            child: command.spawn()?,
            output,
            errors,
        })
    }
}

/// A program that runs, and where it writes.
struct Running {
    child: Child,
    output: File,
    errors: File,
}

fn memory() -> io::Result<File> {
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
        let mut running = self.begin(program, arguments)?;
        let status = running.child.wait()?;
        Ok(Output {
            code: status.code(),
            stdout: read_whole(running.output)?,
            stderr: read_whole(running.errors)?,
        })
    }

    fn mounts(&self) -> io::Result<Vec<Mounted>> {
        // A path or an option of somebody's mount may be in any encoding.
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

    fn share(&self, mount_point: &Path) -> io::Result<()> {
        // mount(2) takes neither device nor type where the propagation is changed.
        Mount::builder()
            .fstype("none")
            .flags(MountFlags::REC | MountFlags::from_bits_retain(PropagationType::SHARED.bits()))
            .mount("", mount_point)
            .map(drop)
    }

    fn attached_as(&self, device: &Path) -> io::Result<Option<String>> {
        // EBS writes it into its answer to Identify Controller (EC2 user guide, "Identify the EBS device").
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
    fn what_a_program_says_is_known_when_it_ends() {
        let host = Host::new("/", Arc::new(LocalSystem::default()));
        let said = "echo much; echo less >&2; exit 3";
        let ran = host.run("sh", &["-c", said]).unwrap();
        let said = (ran.code, &*ran.stdout, ran.complaint());
        assert_eq!(said, (Some(3), "much\n", "less"));
        let error = host.run("no-such-program", &[]).unwrap_err().to_string();
        assert!(error.contains("no-such-program: is it installed?"));
    }

    /// Nobody reads any more what it says, as after the end of the agent.
    #[test]
    fn a_program_goes_on_to_its_end_without_anybody_who_listens() {
        let folder = tempfile::TempDir::new().unwrap();
        let [go, done] = ["go", "done"].map(|name| folder.path().join(name));
        let script = "until [ -e \"$0\" ]; do sleep 0.01; done; echo on; echo on >&2; : > \"$1\"";
        let arguments = ["-c", script, go.to_str().unwrap(), done.to_str().unwrap()];
        let running = LocalSystem::default().begin("sh", &arguments).unwrap();
        let mut child = running.child;
        drop((running.output, running.errors));
        std::fs::write(go, "").unwrap();
        while child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(done.exists(), "it was ended by what it said");
    }
}
