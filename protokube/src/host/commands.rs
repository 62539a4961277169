//! Programs of the machine.

use super::Host;
use anyhow::Context;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Child, Command, Stdio};

/// What a program said.
#[derive(Clone, Debug)]
pub(super) struct Ran {
    /// Exit code; `None`: it was killed.
    pub code: Option<i32>,
    /// Standard output.
    pub output: String,
    /// Standard error, or the output where that is empty.
    pub complaint: String,
}

/// A program that runs, and where it writes.
struct Begun {
    child: Child,
    output: File,
    errors: File,
}

impl Host {
    /// Runs a program to its end.
    pub(super) fn run(&self, program: &str, arguments: &[&str]) -> anyhow::Result<Ran> {
        let ran = || {
            let mut begun = self.begin(program, arguments)?;
            let status = begun.child.wait()?;
            let (output, errors) = (text(begun.output)?, text(begun.errors)?);
            Ok::<_, std::io::Error>(Ran {
                code: status.code(),
                complaint: if errors.is_empty() {
                    output.clone()
                } else {
                    errors
                },
                output,
            })
        };
        ran().with_context(|| format!("could not run {program}: is it installed?"))
    }

    /// Begins a program. It goes on where protokube ends (its unit says `KillMode=process`): what repairs or grows a file system must not be
    /// cut off in the middle. So it writes to memory of its own: a pipe without a reader would end it at the first word (`SIGPIPE`).
    fn begin(&self, program: &str, arguments: &[&str]) -> std::io::Result<Begun> {
        let (output, errors) = (memory()?, memory()?);
        let child = Command::new(program)
            .args(arguments)
            .env("PATH", &self.programs)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(errors.try_clone()?)
            .spawn()?;
        Ok(Begun {
            child,
            output,
            errors,
        })
    }
}

fn memory() -> std::io::Result<File> {
    Ok(memfd_create("said", MemfdFlags::CLOEXEC)?.into())
}

fn text(mut file: File) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_a_program_says_is_known_when_it_ends() {
        let host = Host::machine();
        let said = "echo much; echo less >&2; exit 3";
        let ran = host.run("sh", &["-c", said]).unwrap();
        let said = (ran.code, &*ran.output, &*ran.complaint);
        assert_eq!(said, (Some(3), "much", "less"));
        let error = host.run("no-such-program", &[]).unwrap_err().to_string();
        assert!(error.contains("no-such-program: is it installed?"));
    }

    /// Nobody reads any more what it says, as after the end of protokube.
    #[test]
    fn a_program_goes_on_to_its_end_without_anybody_who_listens() {
        let folder = tempfile::TempDir::new().unwrap();
        let [go, done] = ["go", "done"].map(|name| folder.path().join(name));
        let script = "until [ -e \"$0\" ]; do sleep 0.01; done; echo on; echo on >&2; : > \"$1\"";
        let arguments = ["-c", script, go.to_str().unwrap(), done.to_str().unwrap()];
        let begun = Host::machine().begin("sh", &arguments).unwrap();
        let mut child = begun.child;
        drop((begun.output, begun.errors));
        std::fs::write(go, "").unwrap();
        while child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(done.exists(), "it was ended by what it said");
    }
}
