//! Running a program inside a host, as one of its processes: its namespaces, its cgroups, its capabilities. In a virtual machine its
//! agent runs it.

use super::machine;
use super::state::{Host, HostState, wait_for_state};
use crate::cgroup;
use crate::lab_paths::LabPaths;
use crate::tool;
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::fs;
use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::time::Duration;

/// What `env` is told before a program's terminal: nothing of the environment outside is there.
pub(super) const ENVIRONMENT: [&str; 4] = [
    "-i",
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/root",
    "LANG=C.UTF-8",
];

/// How long a host may take from its launch to systemd.
const BOOT: Duration = Duration::from_mins(1);

/// The same for a virtual machine, up to its agent, on two busy cores.
const MACHINE_BOOT: Duration = Duration::from_mins(20);

/// Joins the cgroups in `CGROUPS`, then becomes its arguments: entering namespaces does not move between cgroups.
const JOIN: &str =
    r#"for cgroup in $CGROUPS; do echo $$ >"$cgroup/cgroup.procs" || exit 125; done; exec "$@""#;

/// Runs its arguments as a child in the namespaces entered. nsenter itself would stop with its child when the host stops
/// all processes on its way down, reap it never, and so hold the host's end up for ever.
const RUN: &str = r#""$@"; exit $?"#;

/// Runs with this program's standard input, output and error; the program's exit status. In a virtual machine it has no input, and its
/// output comes when it has ended.
pub fn exec_in_host<S: AsRef<OsStr>>(
    place: &LabPaths,
    instance: &str,
    words: &[S],
) -> Result<ExitStatus> {
    if is_machine(place, instance)? {
        let output = exec_in_machine(place, instance, words)?;
        let written = stdout().write_all(&output.stdout);
        let written = written.and_then(|()| stderr().write_all(&output.stderr));
        written.context("writing its output")?;
        return Ok(output.status);
    }
    let mut command = host_command(place, instance, words)?;
    command
        .status()
        .with_context(|| format!("entering host {instance}"))
}

/// Runs with no input; what it printed, and its exit status.
pub fn exec_output<S: AsRef<OsStr>>(
    place: &LabPaths,
    instance: &str,
    words: &[S],
) -> Result<Output> {
    if is_machine(place, instance)? {
        return exec_in_machine(place, instance, words);
    }
    let mut command = host_command(place, instance, words)?;
    tool::run_tool(command.stdin(Stdio::null()))
        .with_context(|| format!("entering host {instance}"))
}

fn is_machine(place: &LabPaths, instance: &str) -> Result<bool> {
    Ok(Host::read_host(place, instance)?.machine.is_some())
}

fn exec_in_machine<S: AsRef<OsStr>>(
    place: &LabPaths,
    instance: &str,
    words: &[S],
) -> Result<Output> {
    use HostState::{Crashed, Off, Running};
    if wait_for_state(place, instance, &[Running, Off, Crashed], MACHINE_BOOT)? != Running {
        bail!("host {instance} is off: see `lab console {instance}`");
    }
    machine::run_program(place, instance, words)
}

fn host_command<S: AsRef<OsStr>>(place: &LabPaths, instance: &str, words: &[S]) -> Result<Command> {
    wait_for_state(place, instance, &[HostState::Running], BOOT)?;
    let host = Host::read_host(place, instance)?;
    let init = host
        .init_process()?
        .with_context(|| format!("host {instance} is off: see `lab console {instance}`"))?;
    let mut cgroups = Vec::new();
    for path in joinable_cgroups(place, instance)? {
        cgroups.push(path.display().to_string());
    }
    let mut command = Command::new("sh");
    command
        .env("CGROUPS", cgroups.join(" "))
        .args([
            "-c",
            JOIN,
            "kctl-lab-exec",
            "nsenter",
            "--target",
            &init.pid.to_string(),
        ])
        .args(["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup"])
        .args(["--no-fork", "--", "sh", "-c", RUN, "kctl-lab-run"])
        // What comes from outside has the machine's capabilities: it gets the host's.
        .args([
            "setpriv",
            "--bounding-set=-sys_time,-sys_module",
            "--inh-caps=-all",
            "env",
        ])
        .args(ENVIRONMENT)
        .arg(format!(
            "TERM={}",
            std::env::var("TERM").unwrap_or_else(|_| "dumb".to_owned())
        ))
        .args(words);
    Ok(command)
}

/// Where a process from outside can go: the root of what the host sees, which in some hierarchies is a cgroup `payload` that
/// the container runtime made. In version 2 only leaves hold processes.
fn joinable_cgroups(place: &LabPaths, instance: &str) -> Result<Vec<PathBuf>> {
    let host = place.host_cgroup(instance);
    let unified = cgroup::only_unified()?;
    let mut paths = Vec::new();
    for hierarchy in cgroup::list_hierarchies()? {
        let mut path = hierarchy.root.join(&host);
        if path.join("payload").is_dir() {
            path.push("payload");
        }
        if unified {
            path.push("kctl-lab-exec");
            fs::create_dir_all(&path)
                .with_context(|| format!("making cgroup {}", path.display()))?;
        }
        paths.push(path);
    }
    Ok(paths)
}
