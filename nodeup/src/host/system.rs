//! What is asked of the machine besides files: programs and mounts.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

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
        let data = request.options.as_str();
        sys_mount::Mount::builder()
            .fstype(request.filesystem.as_str())
            .data(data)
            .mount(&request.device, &request.path)
            .map(drop)
    }

    fn share(&self, mount_point: &Path) -> io::Result<()> {
        use rustix::mount::{MountPropagationFlags, mount_change};
        let flags = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
        Ok(mount_change(mount_point, flags)?)
    }
}
