//! Undoing a lab: all that its ledger names and nothing else, as often as asked, whoever was killed while making it.

use crate::lab_paths::LabPaths;
use crate::ledger::{self, Ledger, LedgerEntry};
use crate::process::Process;
use crate::{cgroup, mounts, netns, tool};
use anyhow::{Context, Result, anyhow, bail};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::Signal;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long those who still make things may take to end.
const MAKERS: Duration = Duration::from_mins(1);
/// How long a mount or loop device may stay busy after its users were killed.
const BUSY: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// Removes a lab. What could not be removed stays in the ledger, and the error says why; calling again goes on.
pub fn remove_lab(place: &LabPaths) -> Result<()> {
    let ledger = stop_makers(place)?;
    let made = ledger::read_entries(place).context("reading the ledger")?;
    let mut problems = Vec::new();
    // By kind, since each kind can be in use by those before it; within a kind the newest first.
    for stage in [
        end_processes,
        remove_cgroups,
        remove_mounts,
        detach_loops,
        remove_namespaces,
        remove_directories,
    ] {
        for one in made.iter().rev() {
            if let Err(problem) = stage(place, one) {
                problems.push(format!("{problem:#}"));
            }
        }
    }
    if problems.is_empty() {
        cgroup::remove_cgroup(&place.cgroup_path())?;
        if let Some(shared) = place.cgroup_path().parent() {
            cgroup::remove_if_empty(shared)?;
        }
        // The ledger goes last.
        for own in [place.data_folder(), place.run()] {
            mounts::remove_tree(own)?;
            remove_if_empty(own.parent())?;
        }
        drop(ledger);
        return Ok(());
    }
    problems.sort();
    problems.dedup();
    Err(anyhow!(
        "lab {} is not wholly removed, call again after mending:\n{}",
        place.name(),
        problems.join("\n")
    ))
}

/// Kills what the ledger names until nobody can make anything any more; the ledger, locked. `None` without one.
fn stop_makers(place: &LabPaths) -> Result<Option<File>> {
    let path = place.ledger_file();
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.with_context(|| format!("opening {}", path.display()))?,
    };
    let end = Instant::now() + MAKERS;
    loop {
        for one in ledger::read_entries(place)
            .context("reading the ledger")?
            .iter()
            .rev()
        {
            end_processes(place, one)?;
            if let LedgerEntry::Cgroup { path } = one {
                cgroup::kill_processes(path)?;
            }
        }
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if Instant::now() < end => sleep(PAUSE),
            Err(TryLockError::WouldBlock) => {
                bail!(
                    "somebody still works on lab {} (`fuser {}` says who): end it first",
                    place.name(),
                    path.display()
                )
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("locking {}", path.display()));
            }
        }
    }
}

fn end_processes(_: &LabPaths, made: &LedgerEntry) -> Result<()> {
    let LedgerEntry::Process(process) = made else {
        return Ok(());
    };
    if process.pid == std::process::id() {
        return Ok(());
    }
    end_process(process)
}

fn end_process(process: &Process) -> Result<()> {
    process.signal(Signal::KILL)?;
    let patience = Instant::now() + BUSY;
    while process.is_alive()? {
        if Instant::now() > patience {
            bail!("process {} does not end after SIGKILL", process.pid);
        }
        sleep(PAUSE);
    }
    Ok(())
}

fn remove_cgroups(place: &LabPaths, made: &LedgerEntry) -> Result<()> {
    let LedgerEntry::Cgroup { path } = made else {
        return Ok(());
    };
    if !path.starts_with(place.cgroup_path()) {
        bail!(
            "cgroup {} is not lab {}'s: left alone",
            path.display(),
            place.name()
        );
    }
    cgroup::remove_cgroup(path)
}

fn remove_mounts(_: &LabPaths, made: &LedgerEntry) -> Result<()> {
    let LedgerEntry::Mount { path } = made else {
        return Ok(());
    };
    unmount_all(path)
}

/// Unmounts whatever is mounted at a path; lazily when it stays busy.
pub(crate) fn unmount_all(path: &Path) -> Result<()> {
    let end = Instant::now() + BUSY;
    while mounts::mount_points_below(path)?
        .iter()
        .any(|point| point == path)
    {
        let flags = if Instant::now() > end {
            UnmountFlags::DETACH
        } else {
            UnmountFlags::empty()
        };
        match unmount(path, flags) {
            Ok(()) | Err(Errno::INVAL) => {}
            Err(Errno::BUSY) => sleep(PAUSE),
            Err(error) => {
                return Err(error).with_context(|| format!("unmounting {}", path.display()));
            }
        }
    }
    Ok(())
}

fn detach_loops(_: &LabPaths, made: &LedgerEntry) -> Result<()> {
    let LedgerEntry::Loop { file } = made else {
        return Ok(());
    };
    release_loop(file)
}

/// Detaches every loop device of a file, and waits until they are gone. Nobody else makes anything any more.
fn release_loop(file: &Path) -> Result<()> {
    detach_loop(file, |_| true, || Ok(Command::new("losetup")))
}

/// Detaches one loop device of a file, and waits until it is gone; by now it may be another file's.
pub(crate) fn release_device(ledger: &Ledger, file: &Path, device: &Path) -> Result<()> {
    detach_loop(
        file,
        |one| one == device,
        || ledger.locked_command("losetup"),
    )
}

fn detach_loop(
    file: &Path,
    ours: impl Fn(&Path) -> bool,
    losetup: impl Fn() -> io::Result<Command>,
) -> Result<()> {
    let end = Instant::now() + BUSY;
    while file.exists() {
        let mut devices = loop_devices(file)?;
        devices.retain(|device| ours(device));
        if devices.is_empty() {
            break;
        }
        if Instant::now() > end {
            let file = file.display();
            bail!("{devices:?} of {file} stay in use: `findmnt` in the hosts says by whom");
        }
        for device in devices {
            // Gone meanwhile, or going once its last user is: looked at again above.
            tool::run_tool(losetup()?.arg("--detach").arg(&device))?;
        }
        sleep(PAUSE);
    }
    Ok(())
}

pub(crate) fn loop_devices(file: &Path) -> Result<Vec<PathBuf>> {
    let mut losetup = Command::new("losetup");
    losetup
        .args(["--list", "--noheadings", "--output", "NAME", "--associated"])
        .arg(file);
    Ok(tool::run(&mut losetup)?
        .lines()
        .map(|line| PathBuf::from(line.trim()))
        .collect())
}

fn remove_namespaces(_: &LabPaths, made: &LedgerEntry) -> Result<()> {
    let LedgerEntry::Netns { name } = made else {
        return Ok(());
    };
    remove_netns(name)
}

/// Removes a named network namespace, also one whose making was cut off in the middle.
pub(crate) fn remove_netns(name: &str) -> Result<()> {
    let path = netns::netns_path(name);
    loop {
        match unmount(&path, UnmountFlags::DETACH) {
            Ok(()) => {}
            Err(Errno::INVAL | Errno::NOENT) => break,
            Err(error) => {
                return Err(error).with_context(|| format!("unmounting {}", path.display()));
            }
        }
    }
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", path.display()))
        }
        _ => Ok(()),
    }
}

fn remove_directories(place: &LabPaths, made: &LedgerEntry) -> Result<()> {
    let LedgerEntry::Directory { path } = made else {
        return Ok(());
    };
    if path == place.run() || path == place.data_folder() {
        return Ok(()); // Last of all, with the ledger.
    }
    mounts::remove_tree(path)
}

fn remove_if_empty(folder: Option<&Path>) -> Result<()> {
    let Some(folder) = folder else {
        return Ok(());
    };
    match fs::remove_dir(folder) {
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty
            ) =>
        {
            Err(error).with_context(|| format!("removing {}", folder.display()))
        }
        _ => Ok(()),
    }
}
