//! What is known of a host: where its things are, and how it is now.

use super::machine::{self, MachineImage};
use super::volume::HostVolume;
use crate::json_file;
use crate::lab_paths::LabPaths;
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
    /// Instance id, for example `i-0123456789abcdef0`.
    pub instance: String,
    /// As `m6i.large`; what the host's firmware says.
    pub instance_type: String,
    /// Id of the machine image. All are the lab's own, but [`super::PANICS`].
    pub image: String,
    /// Hardware address of the network interface.
    pub mac: String,
}

/// A host that was booted once. Kept in `run/hosts/INSTANCE/host.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    #[serde(flatten)]
    pub spec: HostSpec,
    /// The process that runs the host and outlives its reboots.
    pub launcher: Process,
    /// What it boots, if it is a virtual machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineImage>,
}

/// How a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostState {
    /// Between two boots, or before systemd has begun.
    Booting,
    /// systemd runs, or still boots; in a virtual machine, the agent that it starts answers.
    Running,
    /// It powered itself off.
    Off,
    /// The host ended without being powered off or rebooted.
    Crashed,
}

/// Files of one host.
pub(super) struct HostPaths {
    /// Volatile state, `run/hosts/INSTANCE`.
    pub run: PathBuf,
    /// Of the host's disk, `data/hosts/INSTANCE`.
    pub data: PathBuf,
}

impl HostPaths {
    pub(super) fn for_host(place: &LabPaths, instance: &str) -> Self {
        Self {
            run: place.run().join("hosts").join(instance),
            data: place.data_folder().join("hosts").join(instance),
        }
    }

    /// The host's disk, mounted.
    pub(super) fn disk_folder(&self) -> PathBuf {
        self.data.join("disk")
    }

    /// The mounted root file system.
    pub(super) fn root_folder(&self) -> PathBuf {
        self.run.join("root")
    }

    pub(super) fn host_file(&self) -> PathBuf {
        self.run.join("host.json")
    }

    pub(super) fn volumes_file(&self) -> PathBuf {
        self.run.join("volumes.json")
    }

    pub(super) fn read_volumes(&self) -> Result<Vec<HostVolume>> {
        Ok(json_file::read_json(&self.volumes_file())?.unwrap_or_default())
    }

    pub(super) fn console_file(&self) -> PathBuf {
        self.run.join("console")
    }

    /// The runtime's exit code, written when the host is off for good.
    pub(super) fn exit_file(&self) -> PathBuf {
        self.run.join("exit")
    }

    /// The file of the host's disk.
    pub(super) fn disk_image(&self) -> PathBuf {
        self.data.join("disk.img")
    }

    /// Socket of QEMU's monitor.
    pub(super) fn monitor_socket(&self) -> PathBuf {
        self.run.join("monitor")
    }

    /// Socket of the agent in a virtual machine.
    pub(super) fn agent_socket(&self) -> PathBuf {
        self.run.join("agent")
    }
}

impl Host {
    pub fn read_host(place: &LabPaths, instance: &str) -> Result<Self> {
        let path = HostPaths::for_host(place, instance).host_file();
        json_file::read_json(&path)?.with_context(|| {
            let lab = place.name();
            format!(
                "no host {instance} in lab {lab} (no {}): `lab list` shows those there are",
                path.display()
            )
        })
    }

    /// The container runtime, or QEMU, of the present boot.
    fn runtime_pid(&self) -> Result<Option<u32>> {
        if !self.launcher.is_alive()? {
            return Ok(None);
        }
        let name = match self.machine {
            Some(_) => machine::PROCESS_NAME,
            None => "systemd-nspawn",
        };
        for child in process::child_pids(self.launcher.pid)? {
            if process::process_name(child)?.as_deref() == Some(name) {
                return Ok(Some(child));
            }
        }
        Ok(None)
    }

    /// The host's first process of the present boot, as the machine sees it; of a virtual machine all there is to see, QEMU.
    pub fn init_process(&self) -> Result<Option<Process>> {
        let Some(runtime) = self.runtime_pid()? else {
            return Ok(None);
        };
        if self.machine.is_some() {
            return Ok(Process::from_pid(runtime).ok());
        }
        for child in process::child_pids(runtime)? {
            // Others are on the way to becoming the host, in the machine's pid namespace.
            if process::namespace_pids(child)?.get(1) == Some(&1) {
                return Ok(Process::from_pid(child).ok());
            }
        }
        Ok(None)
    }

    /// A virtual machine is asked, which takes seconds if it does not answer.
    pub fn current_state(&self, place: &LabPaths) -> Result<HostState> {
        if let Some(ended) = self.end_state(place)? {
            return Ok(ended);
        }
        let running = match self.machine {
            Some(_) => machine::answers(place, &self.spec.instance),
            None => self.has_systemd()?,
        };
        Ok(if running {
            HostState::Running
        } else {
            HostState::Booting
        })
    }

    fn has_systemd(&self) -> Result<bool> {
        let Some(init) = self.init_process()? else {
            return Ok(false);
        };
        Ok(process::process_name(init.pid)?.as_deref() == Some("systemd"))
    }

    /// Off or crashed; `None` while the host boots or runs.
    pub fn end_state(&self, place: &LabPaths) -> Result<Option<HostState>> {
        if self.launcher.is_alive()? {
            return Ok(None);
        }
        let exit = HostPaths::for_host(place, &self.spec.instance).exit_file();
        match fs::read_to_string(&exit) {
            Ok(code) if code.trim() == "0" => Ok(Some(HostState::Off)),
            Ok(_) => Ok(Some(HostState::Crashed)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(HostState::Crashed)),
            Err(error) => Err(error).with_context(|| format!("reading {}", exit.display())),
        }
    }

    pub fn read_volumes(&self, place: &LabPaths) -> Result<Vec<HostVolume>> {
        HostPaths::for_host(place, &self.spec.instance).read_volumes()
    }
}

/// All hosts of a lab, by instance id.
pub fn list_hosts(place: &LabPaths) -> Result<Vec<Host>> {
    let folder = place.run().join("hosts");
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.with_context(|| format!("listing {}", folder.display()))?,
    };
    let mut hosts = Vec::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("listing {}", folder.display()))?;
        // Without the file it never booted, or is just going.
        hosts.extend(json_file::read_json::<Host>(
            &entry.path().join("host.json"),
        )?);
    }
    hosts.sort_by(|one, other| one.spec.instance.cmp(&other.spec.instance));
    Ok(hosts)
}

/// Waits until the host is in one of the states; the one it is in.
pub fn wait_for_state(
    place: &LabPaths,
    instance: &str,
    states: &[HostState],
    limit: Duration,
) -> Result<HostState> {
    let end = Instant::now() + limit;
    loop {
        let state = Host::read_host(place, instance)?.current_state(place)?;
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
