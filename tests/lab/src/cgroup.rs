//! Cgroups of the lab, the same path in every hierarchy the machine has: version 1, version 2, or both.

use crate::ledger::{Ledger, LedgerEntry};
use crate::mounts;
use crate::process::Process;
use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the kernel is given to end what was killed.
const PATIENCE: Duration = Duration::from_secs(20);

/// A mounted cgroup hierarchy (the one of v2, or one per controller of v1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    pub root: PathBuf,
    pub unified: bool,
}

/// All hierarchies of the machine.
pub fn list_hierarchies() -> Result<Vec<Hierarchy>> {
    let mounts = mounts::read_mounts("self")?.into_iter();
    let found: Vec<Hierarchy> = mounts
        .filter(|mount| mount.point.starts_with("/sys/fs/cgroup"))
        .filter(|mount| mount.kind == "cgroup" || mount.kind == "cgroup2")
        .map(|mount| Hierarchy {
            unified: mount.kind == "cgroup2",
            root: mount.point,
        })
        .collect();
    if found.is_empty() {
        bail!("no cgroup hierarchy is mounted below /sys/fs/cgroup: hosts need one");
    }
    Ok(found)
}

/// Whether version 2 is all there is, so that hosts have it too.
pub fn only_unified() -> Result<bool> {
    Ok(list_hierarchies()?
        .iter()
        .all(|hierarchy| hierarchy.unified))
}

/// Makes a cgroup (a path below a hierarchy's root) everywhere; where it is in each hierarchy.
pub fn create_cgroup(ledger: &Ledger, path: &Path) -> Result<Vec<PathBuf>> {
    ledger.record(&LedgerEntry::Cgroup {
        path: path.to_owned(),
    })?;
    list_hierarchies()?
        .iter()
        .map(|hierarchy| {
            make_in(hierarchy, path).with_context(|| format!("making cgroup {}", path.display()))
        })
        .collect()
}

/// Makes a cgroup everywhere and moves this process there; what it begins from then on is there too.
pub fn join_cgroup(ledger: &Ledger, path: &Path) -> Result<()> {
    for cgroup in create_cgroup(ledger, path)? {
        let procs = cgroup.join("cgroup.procs");
        fs::write(&procs, std::process::id().to_string())
            .with_context(|| format!("writing {}", procs.display()))?;
    }
    Ok(())
}

fn make_in(hierarchy: &Hierarchy, path: &Path) -> Result<PathBuf> {
    let mut at = hierarchy.root.clone();
    let parents = path.iter().count().saturating_sub(1);
    for (depth, part) in path.iter().enumerate() {
        if hierarchy.unified {
            pass_on_controllers(&at)?;
        }
        at.push(part);
        match fs::create_dir(&at) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(error).with_context(|| format!("making {}", at.display()));
            }
            _ => {}
        }
        inherit_cpuset(&at)?;
        if depth < parents {
            set_cpu_weight(&at)?;
        }
    }
    Ok(at)
}

/// What holds machines gets CPU time as so many programs of the machine would, when they all want it; by itself it would get
/// as much as one.
fn set_cpu_weight(cgroup: &Path) -> Result<()> {
    for (name, weight) in [("cpu.shares", "10240"), ("cpu.weight", "1000")] {
        let path = cgroup.join(name);
        if path.exists() {
            fs::write(&path, weight).with_context(|| format!("writing {}", path.display()))?;
        }
    }
    Ok(())
}

/// Version 2: a child has only the controllers that its parent passes on.
fn pass_on_controllers(parent: &Path) -> Result<()> {
    let controllers = parent.join("cgroup.controllers");
    let all = fs::read_to_string(&controllers)
        .with_context(|| format!("reading {}", controllers.display()))?;
    let passed = parent.join("cgroup.subtree_control");
    let already =
        fs::read_to_string(&passed).with_context(|| format!("reading {}", passed.display()))?;
    let already: BTreeSet<&str> = already.split_whitespace().collect();
    for controller in all.split_whitespace().filter(|one| !already.contains(one)) {
        fs::write(&passed, format!("+{controller}"))
            .with_context(|| format!("passing {controller} on in {}", passed.display()))?;
    }
    Ok(())
}

/// Version 1: a new cpuset is empty, and an empty one takes no process.
fn inherit_cpuset(cgroup: &Path) -> Result<()> {
    for name in ["cpuset.cpus", "cpuset.mems"] {
        let file = cgroup.join(name);
        if !file.exists() || cgroup.join("cgroup.controllers").exists() {
            continue;
        }
        let own =
            fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        if own.trim().is_empty() {
            let parent = cgroup.parent().unwrap_or(cgroup).join(name);
            let value = fs::read_to_string(&parent)
                .with_context(|| format!("reading {}", parent.display()))?;
            fs::write(&file, value).with_context(|| format!("writing {}", file.display()))?;
        }
    }
    Ok(())
}

/// Pids in a cgroup and below it, in all hierarchies.
pub fn pids_in_cgroup(path: &Path) -> Result<BTreeSet<u32>> {
    let mut pids = BTreeSet::new();
    for hierarchy in list_hierarchies()? {
        for cgroup in cgroup_tree(&hierarchy.root.join(path))? {
            let file = cgroup.join("cgroup.procs");
            match fs::read_to_string(&file) {
                Ok(text) => pids.extend(text.lines().filter_map(|pid| pid.parse::<u32>().ok())),
                Err(error) if is_vanished(&error) => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("reading {}", file.display()));
                }
            }
        }
    }
    // Zero stands for a process of a pid namespace that is not ours.
    pids.remove(&0);
    Ok(pids)
}

/// A cgroup and all below it, children before parents; empty when it is not there.
pub fn cgroup_tree(cgroup: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(cgroup) {
        Err(error) if is_vanished(&error) => return Ok(found),
        other => other.with_context(|| format!("listing {}", cgroup.display()))?,
    };
    for entry in entries {
        let entry = match entry {
            Err(error) if is_vanished(&error) => break,
            other => other.with_context(|| format!("listing {}", cgroup.display()))?,
        };
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(cgroup_tree(&entry.path())?);
        }
    }
    found.push(cgroup.to_owned());
    Ok(found)
}

fn is_vanished(error: &io::Error) -> bool {
    // A cgroup removed while its file is open answers ENODEV.
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error())
}

/// Ends every process in a cgroup and below; returns when none is left.
pub fn kill_processes(path: &Path) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let pids = pids_in_cgroup(path)?;
        if pids.is_empty() {
            return Ok(());
        }
        if Instant::now() > end {
            bail!(
                "processes {pids:?} of cgroup {} do not end after SIGKILL",
                path.display()
            );
        }
        // A pid may have passed to another process since it was listed. Who is told apart by its start time, and is
        // listed after that once more, is a member.
        let found: Vec<Process> = pids
            .iter()
            .filter_map(|pid| Process::from_pid(*pid).ok())
            .collect();
        let still = pids_in_cgroup(path)?;
        for process in found.iter().filter(|process| still.contains(&process.pid)) {
            process.signal(Signal::KILL)?;
        }
        sleep(Duration::from_millis(20));
    }
}

/// Ends what is inside and removes the cgroup everywhere; nothing there is fine.
pub fn remove_cgroup(path: &Path) -> Result<()> {
    kill_processes(path)?;
    for hierarchy in list_hierarchies()? {
        let end = Instant::now() + PATIENCE;
        for cgroup in cgroup_tree(&hierarchy.root.join(path))? {
            // A cgroup stays busy for a moment after its last process.
            while let Err(error) = fs::remove_dir(&cgroup) {
                if error.kind() == io::ErrorKind::NotFound {
                    break;
                }
                if error.kind() != io::ErrorKind::ResourceBusy || Instant::now() > end {
                    return Err(error)
                        .with_context(|| format!("removing cgroup {}", cgroup.display()));
                }
                sleep(Duration::from_millis(20));
            }
        }
    }
    Ok(())
}

/// Removes the cgroup everywhere if nothing is below it.
pub fn remove_if_empty(path: &Path) -> Result<()> {
    for hierarchy in list_hierarchies()? {
        let cgroup = hierarchy.root.join(path);
        match fs::remove_dir(&cgroup) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
            Err(error) => {
                return Err(error).with_context(|| format!("removing cgroup {}", cgroup.display()));
            }
        }
    }
    Ok(())
}
