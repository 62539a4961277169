//! Switching hosts off and on.

use super::boot::boot_again;
use super::exec::exec_output;
use super::state::{Host, HostPaths, HostState, wait_for_state};
use super::{detach, machine};
use crate::lab_paths::LabPaths;
use crate::ledger::Ledger;
use crate::process::Process;
use crate::{cgroup, mounts, teardown};
use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long what was killed may take to be gone.
const KILLED: Duration = Duration::from_secs(20);

/// Crashes a host as a power failure does: its volumes are cut off, so that what was not flushed to them is lost; then its
/// first process is killed, and with it all others, without a word to them. Its own disk stays as
/// it is; that of a virtual machine lacks what its kernel had not written.
pub fn kill9(place: &LabPaths, instance: &str) -> Result<()> {
    let host = Host::read_host(place, instance)?;
    detach::cut_off(place, &host)?;
    if let Some(init) = host.init_process()? {
        init.signal(Signal::KILL)?;
    } else {
        // Not that far yet, or between two boots.
        host.launcher.signal(Signal::KILL)?;
        cgroup::kill_processes(&place.host_cgroup(instance))?;
    }
    wait_for_state(
        place,
        instance,
        &[HostState::Off, HostState::Crashed],
        KILLED,
    )?;
    detach::wait_let_go(place, &host)
}

/// Asks a host to power itself off, as EC2 does when an instance is stopped; the state after `limit` at the latest.
pub fn power_off(place: &LabPaths, instance: &str, limit: Duration) -> Result<HostState> {
    let host = Host::read_host(place, instance)?;
    if host.machine.is_none() {
        ask_systemd(place, &host, "poweroff", limit)?;
    } else if host.end_state(place)?.is_none() {
        machine::press_button(place, instance)?;
    }
    wait_for_state(
        place,
        instance,
        &[HostState::Off, HostState::Crashed],
        limit,
    )
}

/// Powers a host off, and kills it if that takes longer than `limit`.
pub fn stop_host(place: &LabPaths, instance: &str, limit: Duration) -> Result<()> {
    if power_off(place, instance, limit).is_err() {
        kill9(place, instance)?;
    }
    Ok(())
}

/// Reboots a host with the same disk: asks it, and if it is not down within `limit`, crashes it and starts it.
pub fn reboot_host(
    place: &LabPaths,
    ledger: &Ledger,
    instance: &str,
    limit: Duration,
) -> Result<()> {
    let host = Host::read_host(place, instance)?;
    if host.machine.is_some() {
        stop_host(place, instance, limit)?;
        return start_host(place, ledger, instance).map(drop);
    }
    let end = Instant::now() + limit;
    let Some(before) = ask_systemd(place, &host, "reboot", limit)? else {
        return start_host(place, ledger, instance).map(drop);
    };
    while before.is_alive()? {
        if Instant::now() > end {
            kill9(place, instance)?;
            return start_host(place, ledger, instance).map(drop);
        }
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Starts a host that is off, from its disk.
pub fn start_host(place: &LabPaths, ledger: &Ledger, instance: &str) -> Result<Host> {
    let host = Host::read_host(place, instance)?;
    boot_again(place, ledger, &host)
}

/// Tells systemd, once it is there to understand it; the first process that was told, `None` when the host is off.
fn ask_systemd(
    place: &LabPaths,
    host: &Host,
    what: &str,
    limit: Duration,
) -> Result<Option<Process>> {
    let instance = &host.spec.instance;
    let state = wait_for_state(
        place,
        instance,
        &[HostState::Running, HostState::Off, HostState::Crashed],
        limit,
    )?;
    let Some(init) = host.init_process()? else {
        return Ok(None);
    };
    if state != HostState::Running {
        return Ok(None);
    }
    let seconds = limit.as_secs().max(1).to_string();
    let output = exec_output(
        place,
        instance,
        &["timeout", &seconds, "systemctl", "--no-block", what],
    )?;
    if !output.status.success() && init.is_alive()? {
        bail!(
            "host {instance} does not {what}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(Some(init))
}

/// Removes a host: powers it off, kills it if that takes longer than `limit`, detaches its volumes, and removes all that
/// [`super::boot_host`] made. Its network namespace is left to who made it. Nothing there is fine.
pub fn terminate_host(place: &LabPaths, instance: &str, limit: Duration) -> Result<()> {
    let paths = HostPaths::for_host(place, instance);
    if paths.host_file().exists() {
        let host = Host::read_host(place, instance)?;
        if host.launcher.is_alive()? {
            stop_host(place, instance, limit)?;
        }
        host.launcher.signal(Signal::KILL)?;
        cgroup::remove_cgroup(&place.host_cgroup(instance))?;
        detach::release_all(place, &host)?;
    }
    cgroup::remove_cgroup(&place.host_cgroup(instance))?;
    teardown::unmount_all(&paths.root_folder())?;
    teardown::unmount_all(&paths.disk_folder())?;
    teardown::remove_netns(&format!("{}.new", place.host_netns(instance)))?;
    for folder in [&paths.data, &paths.run] {
        mounts::remove_tree(folder).with_context(|| format!("removing host {instance}"))?;
    }
    Ok(())
}
