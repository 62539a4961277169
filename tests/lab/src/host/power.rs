//! Switching hosts off and on.

use super::boot::boot_again;
use super::detach;
use super::exec::exec_output;
use super::state::{Host, Paths, State, wait};
use crate::ledger::Ledger;
use crate::place::Place;
use crate::process::Process;
use crate::{cgroup, mounts, teardown};
use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long what was killed may take to be gone.
const KILLED: Duration = Duration::from_secs(20);

/// Crashes a host as a power failure does: its volumes are cut off, so that what was not flushed to them is lost; then its
/// first process is killed, and with it all others, without a word to them. Its own disk is a folder of the machine and stays
/// as it is.
pub fn kill9(place: &Place, instance: &str) -> Result<()> {
    let host = Host::read(place, instance)?;
    detach::cut_off(place, &host)?;
    if let Some(init) = host.init()? {
        init.signal(Signal::KILL)?;
    } else {
        // Not that far yet, or between two boots.
        host.launcher.signal(Signal::KILL)?;
        cgroup::kill(&place.host_cgroup(instance))?;
    }
    wait(place, instance, &[State::Off, State::Crashed], KILLED)?;
    detach::wait_let_go(place, &host)
}

/// Asks a host to power itself off, as EC2 does when an instance is stopped; the state after `limit` at the latest.
pub fn poweroff(place: &Place, instance: &str, limit: Duration) -> Result<State> {
    let host = Host::read(place, instance)?;
    ask(place, &host, "poweroff", limit)?;
    wait(place, instance, &[State::Off, State::Crashed], limit)
}

/// Reboots a host with the same disk: asks it, and if it is not down within `limit`, crashes it and starts it.
pub fn reboot(place: &Place, ledger: &Ledger, instance: &str, limit: Duration) -> Result<()> {
    let host = Host::read(place, instance)?;
    let end = Instant::now() + limit;
    let Some(before) = ask(place, &host, "reboot", limit)? else {
        return start(place, ledger, instance).map(drop);
    };
    while before.alive()? {
        if Instant::now() > end {
            kill9(place, instance)?;
            return start(place, ledger, instance).map(drop);
        }
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Starts a host that is off, from its disk.
pub fn start(place: &Place, ledger: &Ledger, instance: &str) -> Result<Host> {
    let host = Host::read(place, instance)?;
    boot_again(place, ledger, &host.spec)
}

/// Tells systemd, once it is there to understand it; the first process that was told, `None` when the host is off.
fn ask(place: &Place, host: &Host, what: &str, limit: Duration) -> Result<Option<Process>> {
    let instance = &host.spec.instance;
    let state = wait(
        place,
        instance,
        &[State::Running, State::Off, State::Crashed],
        limit,
    )?;
    let Some(init) = host.init()? else {
        return Ok(None);
    };
    if state != State::Running {
        return Ok(None);
    }
    let seconds = limit.as_secs().max(1).to_string();
    let output = exec_output(
        place,
        instance,
        &["timeout", &seconds, "systemctl", "--no-block", what],
    )?;
    if !output.status.success() && init.alive()? {
        bail!(
            "host {instance} does not {what}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(Some(init))
}

/// Removes a host: powers it off, kills it if that takes longer than `limit`, detaches its volumes, and removes all that
/// [`super::boot`] made. Its network namespace is left to who made it. Nothing there is fine.
pub fn terminate(place: &Place, instance: &str, limit: Duration) -> Result<()> {
    let paths = Paths::of(place, instance);
    if paths.host().exists() {
        let host = Host::read(place, instance)?;
        if host.launcher.alive()? && poweroff(place, instance, limit).is_err() {
            kill9(place, instance)?;
        }
        host.launcher.signal(Signal::KILL)?;
        cgroup::remove(&place.host_cgroup(instance))?;
        detach::release_all(place, &host)?;
    }
    cgroup::remove(&place.host_cgroup(instance))?;
    teardown::unmount_all(&paths.root())?;
    teardown::remove_netns(&format!("{}.new", place.host_netns(instance)))?;
    for folder in [&paths.data, &paths.run] {
        mounts::remove_tree(folder).with_context(|| format!("removing host {instance}"))?;
    }
    Ok(())
}
