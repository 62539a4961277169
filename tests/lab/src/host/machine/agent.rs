//! Programs in a virtual machine: started by QEMU's agent there, since nobody enters another kernel from outside.

use super::super::exec::ENVIRONMENT;
use super::super::state::HostPaths;
use super::json_socket::JsonSocket;
use crate::lab_paths::LabPaths;
use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Output};
use std::thread::sleep;
use std::time::Duration;

/// How long an agent that runs may take to answer.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long it may take if the question is whether it runs.
const PING: Duration = Duration::from_secs(5);

/// Between two looks at a program.
const PAUSE: Duration = Duration::from_millis(200);

/// A program that has ended, as the agent says it.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct EndedProgram {
    exitcode: Option<i32>,
    /// Number of the signal that ended it.
    signal: Option<i32>,
    #[serde(default)]
    out_data: String,
    #[serde(default)]
    err_data: String,
}

/// Whether a machine is so far that programs can be started in it.
pub(in super::super) fn answers(place: &LabPaths, instance: &str) -> bool {
    let socket = HostPaths::for_host(place, instance).agent_socket();
    JsonSocket::connect_agent(&socket, PING).is_ok()
}

/// Runs a program with no input; what it printed, of which the agent keeps 16 MB, and its exit status.
pub(in super::super) fn run_program<S: AsRef<OsStr>>(
    place: &LabPaths,
    instance: &str,
    words: &[S],
) -> Result<Output> {
    let words = words.iter().map(|word| word.as_ref().to_string_lossy());
    let words: Vec<_> = ENVIRONMENT
        .into_iter()
        .chain(["TERM=dumb"])
        .map(Cow::Borrowed)
        .chain(words)
        .collect();
    let program = json!({"path": "/usr/bin/env", "arg": words, "capture-output": true});
    let started = ask_agent(place, instance, "guest-exec", &program)?;
    let pid = started.get("pid").context("the agent names no process")?;
    let asked = json!({"pid": pid});
    loop {
        let seen = ask_agent(place, instance, "guest-exec-status", &asked)?;
        if seen.get("exited") == Some(&Value::Bool(true)) {
            return read_output(seen);
        }
        sleep(PAUSE);
    }
}

/// On a connection of its own, so that a program that runs long keeps nobody else waiting.
fn ask_agent(place: &LabPaths, instance: &str, command: &str, arguments: &Value) -> Result<Value> {
    let socket = HostPaths::for_host(place, instance).agent_socket();
    JsonSocket::connect_agent(&socket, PATIENCE)
        .and_then(|mut agent| agent.ask(command, arguments))
        .with_context(|| format!("asking the agent in {instance}: see `lab console {instance}`"))
}

fn read_output(seen: Value) -> Result<Output> {
    let ended: EndedProgram = serde_json::from_value(seen).context("the end of a program")?;
    let decode = |text: &str| STANDARD.decode(text).context("the output of a program");
    let status = (ended.exitcode.unwrap_or_default() << 8) | ended.signal.unwrap_or_default();
    Ok(Output {
        status: ExitStatus::from_raw(status),
        stdout: decode(&ended.out_data)?,
        stderr: decode(&ended.err_data)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_ends_with_its_code_or_a_signal_and_has_its_output() {
        let failed = json!({"exited": true, "exitcode": 3, "out-data": "b3V0", "err-data": "ZXJy"});
        let failed = read_output(failed).unwrap();
        assert_eq!(failed.status.code(), Some(3));
        assert_eq!(
            (&failed.stdout[..], &failed.stderr[..]),
            (&b"out"[..], &b"err"[..])
        );
        let killed = read_output(json!({"exited": true, "signal": 9})).unwrap();
        assert_eq!(
            (killed.status.code(), killed.status.signal()),
            (None, Some(9))
        );
        let quiet = read_output(json!({"exited": true, "exitcode": 0})).unwrap();
        assert!(quiet.status.success() && quiet.stdout.is_empty());
    }
}
