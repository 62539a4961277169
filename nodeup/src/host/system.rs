//! What is asked of the machine besides files: programs and mounts.

use nvme_amz::{Model, Nvme};
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use sys_mount::MountFlags;

/// What a program came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Its exit code; -1 if a signal ended it.
    pub code: i32,
    /// What it wrote on standard output.
    pub out: String,
    /// What it wrote on standard error.
    pub err: String,
}

/// A file system to be mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountRequest {
    /// Device.
    pub device: String,
    /// Where; below the machine's root.
    pub path: String,
    /// Its type.
    pub filesystem: String,
    /// Options, separated by commas.
    pub options: String,
}

/// A machine's programs and mounts.
pub trait System: Send + Sync {
    /// Runs a program to its end. An error: it could not be started.
    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<Answer>;

    /// Mounts a file system.
    fn mount(&self, request: &MountRequest) -> io::Result<()>;

    /// The name under which AWS attached an NVMe disk, as in `/dev/NAME`; `None` if it is no volume of EBS'.
    fn attached_as(&self, device: &Path) -> io::Result<Option<String>>;

    /// Lets mounts below that mount point be seen in other mount namespaces.
    fn share(&self, mount_point: &Path) -> io::Result<()>;
}

/// The machine that this runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine;

impl System for Machine {
    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<Answer> {
        let output = Command::new(program)
            .args(arguments)
            // Texts that are read must not depend on the machine's language, and nobody is there to answer questions.
            .env("LC_ALL", "C")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .output()?;
        Ok(Answer {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    fn mount(&self, request: &MountRequest) -> io::Result<()> {
        let (flags, data) = options(&request.options);
        sys_mount::Mount::builder()
            .fstype(request.filesystem.as_str())
            .flags(flags)
            .data(&data)
            .mount(&request.device, &request.path)
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

    fn share(&self, mount_point: &Path) -> io::Result<()> {
        use rustix::mount::{MountPropagationFlags, mount_change};
        let flags = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
        Ok(mount_change(mount_point, flags)?)
    }
}

/// Options of mount(8) as flags of mount(2), and the rest, which is the file system's own. Those that only tell others
/// what to do with a line of fstab mean nothing here.
fn options(text: &str) -> (MountFlags, String) {
    let mut flags = MountFlags::empty();
    let mut data = Vec::new();
    for option in text.split(',').map(str::trim) {
        match option {
            "" | "auto" | "defaults" | "_netdev" | "noauto" | "nofail" | "rw" => {}
            "dirsync" => flags |= MountFlags::DIRSYNC,
            "noatime" => flags |= MountFlags::NOATIME,
            "nodev" => flags |= MountFlags::NODEV,
            "nodiratime" => flags |= MountFlags::NODIRATIME,
            "noexec" => flags |= MountFlags::NOEXEC,
            "nosuid" => flags |= MountFlags::NOSUID,
            "relatime" => flags |= MountFlags::RELATIME,
            "ro" => flags |= MountFlags::RDONLY,
            "strictatime" => flags |= MountFlags::STRICTATIME,
            "sync" => flags |= MountFlags::SYNCHRONOUS,
            option if option.starts_with("x-") => {}
            option => data.push(option),
        }
    }
    (flags, data.join(","))
}

#[cfg(test)]
mod tests {
    use super::{MountFlags, options};

    #[test]
    fn options_of_mount_are_flags_and_the_rest_is_the_file_systems() {
        let (flags, data) =
            options("defaults,noatime,nofail,x-systemd.growfs,discard,ro,data=ordered");
        assert_eq!(flags, MountFlags::NOATIME | MountFlags::RDONLY);
        assert_eq!(data, "discard,data=ordered");
    }
}
