//! Processes told apart by pid and start time, so that a recycled pid is never touched.

use anyhow::{Context, Result};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;

/// One process of this machine, whether it still runs or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// Field 22 of `/proc/PID/stat`: clock ticks after the machine's boot.
    pub started: u64,
}

impl Process {
    /// The process that has this pid now.
    pub fn from_pid(pid: u32) -> Result<Self> {
        let (_, started) = read_stat(pid)
            .with_context(|| format!("reading /proc/{pid}/stat"))?
            .with_context(|| format!("process {pid} ended as it was looked at"))?;
        Ok(Self { pid, started })
    }

    /// Whether it runs; what has ended and only waits for its parent does not.
    pub fn is_alive(&self) -> Result<bool> {
        let now =
            read_stat(self.pid).with_context(|| format!("reading /proc/{}/stat", self.pid))?;
        Ok(now
            .is_some_and(|(state, started)| started == self.started && !matches!(state, 'Z' | 'X')))
    }

    /// Sends a signal; `false` when the process is gone.
    pub fn signal(&self, signal: Signal) -> Result<bool> {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            anyhow::bail!("{} is no pid", self.pid);
        };
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            // INVAL, and NOENT since Linux 6.15: the number is a thread's now.
            Err(rustix::io::Errno::SRCH | rustix::io::Errno::NOENT | rustix::io::Errno::INVAL) => {
                return Ok(false);
            }
            other => other.with_context(|| format!("opening a handle of process {}", self.pid))?,
        };
        // Only now does the pid stand for one process: the handle holds it.
        if !self.is_alive()? {
            return Ok(false);
        }
        match pidfd_send_signal(handle, signal) {
            Err(rustix::io::Errno::SRCH) => Ok(false),
            other => other
                .map(|()| true)
                .with_context(|| format!("signalling process {}", self.pid)),
        }
    }
}

/// State letter and start time; `None` when there is no such process.
fn read_stat(pid: u32) -> io::Result<Option<(char, u64)>> {
    let Some(text) = read_proc_file(&format!("/proc/{pid}/stat"))? else {
        return Ok(None);
    };
    // The second field is a name in brackets that may hold anything.
    let fields: Vec<&str> = text
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest)
        .split_whitespace()
        .collect();
    let state = fields.first().and_then(|field| field.chars().next());
    let started = fields.get(19).and_then(|field| field.parse().ok());
    state
        .zip(started)
        .map(Some)
        .ok_or_else(|| io::Error::other(format!("unexpected content {text:?}")))
}

/// A file of /proc; `None` when its process is gone.
pub(crate) fn read_proc_file(path: &str) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// Pids of the children, in the order of their making.
pub fn child_pids(pid: u32) -> Result<Vec<u32>> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = read_proc_file(&path).with_context(|| format!("reading {path}"))?;
    let pids = text.unwrap_or_default();
    Ok(pids
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect())
}

/// The short name of a process; `None` when it is gone.
pub fn process_name(pid: u32) -> Result<Option<String>> {
    let path = format!("/proc/{pid}/comm");
    let text = read_proc_file(&path).with_context(|| format!("reading {path}"))?;
    Ok(text.map(|name| name.trim_end().to_owned()))
}

/// Its pid in each pid namespace it is in, outermost first; empty when it is gone.
pub fn namespace_pids(pid: u32) -> Result<Vec<u32>> {
    let path = format!("/proc/{pid}/status");
    let text = read_proc_file(&path)
        .with_context(|| format!("reading {path}"))?
        .unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let pids = line.unwrap_or_default().split_whitespace();
    Ok(pids.filter_map(|pid| pid.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_itself_until_it_ends_and_nobody_afterwards() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = Process::from_pid(child.id()).unwrap();
        let recycled = Process {
            started: process.started + 1,
            ..process
        };
        assert!(process.is_alive().unwrap());
        assert!(!recycled.is_alive().unwrap());
        assert!(!recycled.signal(Signal::KILL).unwrap());
        assert!(
            process.is_alive().unwrap(),
            "another one's signal went astray"
        );
        assert!(process.signal(Signal::KILL).unwrap());
        child.wait().unwrap();
        assert!(!process.is_alive().unwrap());
        assert!(!process.signal(Signal::KILL).unwrap());
    }

    #[test]
    fn what_has_ended_but_was_not_waited_for_is_not_alive() {
        let mut child = Command::new("true").spawn().unwrap();
        let process = Process::from_pid(child.id()).unwrap();
        while process.is_alive().unwrap() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }
}
