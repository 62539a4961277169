//! Beginning a lab: the daemon is started as a process of its own, and has begun once it says where it can be reached.

use super::{DaemonOptions, LabAddresses};
use crate::content::{ContentStore, ServedContent, Versions};
use crate::host::{cache_folder, ensure_inotify_left};
use crate::json_file;
use crate::lab_paths::LabPaths;
use crate::ledger::Ledger;
use crate::services::ca::Ca;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Where a daemon's options are.
pub fn options_path(place: &LabPaths) -> PathBuf {
    place.run().join("options.json")
}

/// What the daemon of a lab says while it runs.
pub fn log_path(place: &LabPaths) -> PathBuf {
    place.run().join("daemon.log")
}

/// What `lab content` makes, made now if it has to be, which is said; programs in its images trust the lab's authority.
pub fn prepare_content(versions: Versions, say: &mut dyn FnMut(&str)) -> Result<ServedContent> {
    let authority = Ca::open(&super::authority_folder()?)?;
    let store = ContentStore::open(&cache_folder()?)?;
    let roots = authority.certificate_pem().to_owned();
    let (served, _) = store.prepare_content(Some(roots), versions, say)?;
    Ok(served)
}

/// Starts `lab serve` and waits until everything answers. `program` is the program `lab`. Fails if the machine has no room for `hosts`
/// hosts. A lab that is up already is left alone; one whose daemon died has to be removed first.
pub fn start_daemon(
    place: &LabPaths,
    options: &DaemonOptions,
    program: &Path,
    hosts: usize,
) -> Result<LabAddresses> {
    if let Some(up) = LabAddresses::read(place)? {
        if up.daemon.is_alive()? {
            return Ok(up);
        }
        bail!(
            "the daemon of lab {} has died ({} says why): `lab down` first",
            place.name(),
            log_path(place).display()
        );
    }
    // Virtual machines have kernels of their own, with their own limits.
    ensure_inotify_left(if options.machines { 0 } else { hosts })?;
    let ledger = Ledger::begin(place).context("beginning the lab")?;
    json_file::write_json(&options_path(place), options)?;
    drop(ledger);
    let log = log_path(place);
    let output = File::create(&log).with_context(|| format!("writing {}", log.display()))?;
    let mut daemon = Command::new(program)
        .args(["--name", place.name(), "serve"])
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        // Not ended with the terminal.
        .process_group(0)
        .spawn()
        .with_context(|| format!("starting {} as the daemon", program.display()))?;
    loop {
        if let Some(up) = LabAddresses::read(place)? {
            return Ok(up);
        }
        if let Some(status) = daemon.try_wait()? {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            bail!("the daemon ended ({status}):\n{}", said.trim_end());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The Python that has what the simulator needs, made on first use; `tests` is the checkout's folder of that name.
pub fn simulator_python(tests: &Path) -> Result<PathBuf> {
    let made = Command::new(tests.join("venv"))
        .arg(tests.join("simulator/requirements.txt"))
        .stderr(Stdio::inherit())
        .output()
        .context("running tests/venv")?;
    if !made.status.success() {
        bail!("tests/venv made no Python environment ({})", made.status);
    }
    let folder = String::from_utf8(made.stdout).context("tests/venv prints no path")?;
    Ok(Path::new(folder.trim()).join("bin/python"))
}
