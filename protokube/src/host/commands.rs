//! Programs of the machine.

use super::Host;
use anyhow::Context;
use std::process::{Command, Stdio};

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

impl Host {
    /// Runs a program to its end.
    pub(super) fn run(&self, program: &str, arguments: &[&str]) -> anyhow::Result<Ran> {
        let ran = Command::new(program)
            .args(arguments)
            .env("PATH", &self.programs)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("could not run {program}: is it installed?"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let (output, errors) = (text(&ran.stdout), text(&ran.stderr));
        Ok(Ran {
            code: ran.status.code(),
            complaint: if errors.is_empty() {
                output.clone()
            } else {
                errors
            },
            output,
        })
    }
}
