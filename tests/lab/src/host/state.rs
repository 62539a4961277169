//! What is known of a host: where its things are, and how it is now.

use super::volume::Attached;
use crate::json_file;
use crate::place::Place;
use crate::process::{self, Process};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fs, io};

/// What a host is made from. All else it learns itself: its address by DHCP, the rest from the metadata service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSpec {
    /// `i-0123456789abcdef0`.
    pub instance: String,
    /// As `m6i.large`; what the host's firmware says.
    pub instance_type: String,
    /// Id of the machine image. All are the lab's own, but [`super::PANICS`].
    pub image: String,
}

/// A host that was booted once. Kept in `run/hosts/INSTANCE/host.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    #[serde(flatten)]
    pub spec: HostSpec,
    /// The process that runs the host and outlives its reboots.
    pub launcher: Process,
}

/// How a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Between two boots, or before systemd has begun.
    Booting,
    /// systemd runs, or still boots.
    Running,
    /// It powered itself off.
    Off,
    /// It ended otherwise.
    Crashed,
}

/// Files of one host.
pub(super) struct Paths {
    /// Volatile, `run/hosts/INSTANCE`.
    pub run: PathBuf,
    /// Disk, `data/hosts/INSTANCE`.
    pub data: PathBuf,
}

impl Paths {
    pub(super) fn of(place: &Place, instance: &str) -> Self {
        Self {
            run: place.run().join("hosts").join(instance),
            data: place.data().join("hosts").join(instance),
        }
    }

    /// The mounted root file system.
    pub(super) fn root(&self) -> PathBuf {
        self.run.join("root")
    }

    pub(super) fn host(&self) -> PathBuf {
        self.run.join("host.json")
    }

    pub(super) fn volumes(&self) -> PathBuf {
        self.run.join("volumes.json")
    }

    pub(super) fn console(&self) -> PathBuf {
        self.run.join("console")
    }

    /// The container runtime's exit code, written when the host is off for good.
    pub(super) fn exit(&self) -> PathBuf {
        self.run.join("exit")
    }
}

impl Host {
    pub fn read(place: &Place, instance: &str) -> Result<Self> {
        let path = Paths::of(place, instance).host();
        json_file::read(&path)?.with_context(|| {
            let lab = place.name();
            format!(
                "no host {instance} in lab {lab} (no {}): `lab list` shows those there are",
                path.display()
            )
        })
    }

    /// The container runtime of the present boot.
    fn runtime(&self) -> Result<Option<u32>> {
        if !self.launcher.alive()? {
            return Ok(None);
        }
        for child in process::children(self.launcher.pid)? {
            if process::name(child)?.as_deref() == Some("systemd-nspawn") {
                return Ok(Some(child));
            }
        }
        Ok(None)
    }

    /// The host's first process of the present boot, as the machine sees it.
    pub fn init(&self) -> Result<Option<Process>> {
        let Some(runtime) = self.runtime()? else {
            return Ok(None);
        };
        for child in process::children(runtime)? {
            // Others are on the way to becoming the host, in the machine's pid namespace.
            if process::namespace_pids(child)?.get(1) == Some(&1) {
                return Ok(Process::of(child).ok());
            }
        }
        Ok(None)
    }

    pub fn state(&self, place: &Place) -> Result<State> {
        if let Some(init) = self.init()? {
            let systemd = process::name(init.pid)?.as_deref() == Some("systemd");
            return Ok(if systemd {
                State::Running
            } else {
                State::Booting
            });
        }
        if self.launcher.alive()? {
            return Ok(State::Booting);
        }
        let exit = Paths::of(place, &self.spec.instance).exit();
        match fs::read_to_string(&exit) {
            Ok(code) if code.trim() == "0" => Ok(State::Off),
            Ok(_) => Ok(State::Crashed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(State::Crashed),
            Err(error) => Err(error).with_context(|| format!("reading {}", exit.display())),
        }
    }

    pub fn volumes(&self, place: &Place) -> Result<Vec<Attached>> {
        Ok(json_file::read(&Paths::of(place, &self.spec.instance).volumes())?.unwrap_or_default())
    }
}

/// All hosts of a lab, by instance id.
pub fn hosts(place: &Place) -> Result<Vec<Host>> {
    let folder = place.run().join("hosts");
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.with_context(|| format!("listing {}", folder.display()))?,
    };
    let mut hosts = Vec::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("listing {}", folder.display()))?;
        // Without the file it never booted, or is just going.
        hosts.extend(json_file::read::<Host>(&entry.path().join("host.json"))?);
    }
    hosts.sort_by(|one, other| one.spec.instance.cmp(&other.spec.instance));
    Ok(hosts)
}

/// Waits until the host is in one of the states; the one it is in.
pub fn wait(place: &Place, instance: &str, states: &[State], limit: Duration) -> Result<State> {
    let end = Instant::now() + limit;
    loop {
        let state = Host::read(place, instance)?.state(place)?;
        if states.contains(&state) {
            return Ok(state);
        }
        if Instant::now() > end {
            bail!(
                "host {instance} is {state:?} after {limit:?}, not one of {states:?}: see `lab console {instance}`"
            );
        }
        sleep(Duration::from_millis(20));
    }
}
