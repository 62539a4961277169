//! Detaching volumes: refused by what is in use, as EC2 does, unless forced, which is pulling the plug. A crash pulls all of
//! them.

use super::machine;
use super::state::{Host, HostPaths};
use super::volume::{HostVolume, lock_attachments, volume_file, write_devices};
use crate::lab_paths::LabPaths;
use crate::ledger::Ledger;
use crate::{cgroup, json_file, mounts, process, teardown, tool};
use anyhow::{Context, Result, bail};
use rustix::fs::OFlags;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What became of a detachment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DetachResult {
    Done,
    /// Mounted or otherwise held in the host: EC2 stays at `detaching` until it is not.
    Busy,
}

/// Ends writing to file systems as if their disks were gone: FS_IOC_SHUTDOWN without flushing, on what is mounted there.
const SHUTDOWN: &str = "import fcntl, os, struct, sys\n\
    points = [os.open(point, os.O_RDONLY) for point in sys.argv[1:]]\n\
    for point in points: fcntl.ioctl(point, 0x8004587D, struct.pack('I', 2))";

/// How often the places are looked up again.
const TRIES: usize = 3;

/// How long the kernel may take to let go of what a machine had mounted.
const LET_GO: Duration = Duration::from_secs(20);

/// Detaches a volume from a host; not attached is [`DetachResult::Done`].
pub fn detach_volume(
    place: &LabPaths,
    instance: &str,
    volume: &str,
    force: bool,
) -> Result<DetachResult> {
    detach_locked(place, instance, volume, force)
        .with_context(|| format!("detaching {volume} from {instance}"))
}

fn detach_locked(
    place: &LabPaths,
    instance: &str,
    volume: &str,
    force: bool,
) -> Result<DetachResult> {
    let ledger = Ledger::open(place).context("opening the ledger")?;
    let _lock = lock_attachments(place)?;
    let host = Host::read_host(place, instance)?;
    let mut volumes = host.read_volumes(place)?;
    let Some(position) = volumes
        .iter()
        .position(|attached| attached.volume == volume)
    else {
        return Ok(DetachResult::Done);
    };
    let attached = volumes.remove(position);
    let held = if host.machine.is_some() {
        // Who uses it there, this machine's kernel does not know.
        if !machine::unplug_volume(place, &host, &attached, force)? {
            return Ok(DetachResult::Busy);
        }
        None
    } else {
        // Held while the devices go, so that nobody begins to use them.
        let held = open_exclusively(&attached)?;
        if held.is_none() {
            if !force {
                return Ok(DetachResult::Busy);
            }
            shut_down(place, instance, &attached)?;
        }
        hide_device(place, &host, &attached)?;
        held
    };
    json_file::write_json(
        &HostPaths::for_host(place, instance).volumes_file(),
        &volumes,
    )?;
    if host.machine.is_none() {
        write_devices(place, instance)?;
    }
    drop(held);
    if force {
        // A file system that was cut off keeps the loop device until it is unmounted.
        tool::run(
            ledger
                .locked_command("losetup")?
                .arg("--detach")
                .arg(&attached.loop_device),
        )?;
    } else {
        teardown::release_device(&ledger, &volume_file(place, volume), &attached.loop_device)?;
    }
    Ok(DetachResult::Done)
}

/// The device, exclusively; `None` while a file system is mounted from it, in whatever namespace.
fn open_exclusively(attached: &HostVolume) -> Result<Option<File>> {
    let flags = i32::try_from(OFlags::EXCL.bits()).context("O_EXCL")?;
    match File::options()
        .read(true)
        .custom_flags(flags)
        .open(&attached.loop_device)
    {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(None),
        Err(error) => {
            Err(error).with_context(|| format!("opening {}", attached.loop_device.display()))
        }
    }
}

/// Removes node and links from the host, if it runs; at its next boot they are not made.
fn hide_device(place: &LabPaths, host: &Host, attached: &HostVolume) -> Result<()> {
    if host.end_state(place)?.is_some() {
        return Ok(());
    }
    let mut words = vec![
        "rm".to_owned(),
        "-f".to_owned(),
        format!("/dev/{}", attached.device_node()),
    ];
    words.extend(
        attached
            .device_links()
            .into_iter()
            .map(|(link, _)| format!("/dev/{link}")),
    );
    let output = super::exec_output(place, &host.spec.instance, &words)?;
    if !output.status.success() {
        bail!(
            "removing the devices in the host: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

/// Cuts off the file system of the device, wherever in the host it is mounted: from now on it answers with errors.
fn shut_down(place: &LabPaths, instance: &str, attached: &HostVolume) -> Result<()> {
    if !shut_down_file_systems(place, instance, std::slice::from_ref(attached))? {
        let device = attached.loop_device.display();
        bail!(
            "{device} is in use, but no file system of it is mounted in the host: end what has it open"
        );
    }
    Ok(())
}

/// Cuts off the file systems of all volumes of a host at once: what was not flushed is lost, as when the power fails.
pub(super) fn cut_off(place: &LabPaths, host: &Host) -> Result<()> {
    shut_down_file_systems(place, &host.spec.instance, &host.read_volumes(place)?).map(drop)
}

/// Waits until nothing of a host that has crashed holds its volumes: a file system that was cut off stays so while it is
/// mounted anywhere, and the next boot would get that one.
pub(super) fn wait_let_go(place: &LabPaths, host: &Host) -> Result<()> {
    let end = Instant::now() + LET_GO;
    for attached in host.read_volumes(place)? {
        while open_exclusively(&attached)?.is_none() {
            if Instant::now() > end {
                let (volume, device) = (&attached.volume, attached.loop_device.display());
                bail!("{volume} ({device}) is still in use {LET_GO:?} after its machine crashed");
            }
            sleep(Duration::from_millis(20));
        }
    }
    Ok(())
}

/// One place of each file system that lies on one of the volumes; a file system may be mounted often.
fn mount_points_of(
    place: &LabPaths,
    instance: &str,
    volumes: &[HostVolume],
) -> Result<Vec<PathBuf>> {
    let mut points = Vec::new();
    for attached in volumes {
        let device = format!("{}:{}", attached.major, attached.minor);
        points.extend(
            mount_points_in_host(place, instance, &device)?
                .into_iter()
                .next(),
        );
    }
    Ok(points)
}

/// False if none is mounted. What mounts and unmounts in the host goes on meanwhile, so a place may have gone before it is opened.
fn shut_down_file_systems(
    place: &LabPaths,
    instance: &str,
    volumes: &[HostVolume],
) -> Result<bool> {
    let mut tries = 0..TRIES;
    loop {
        let points = mount_points_of(place, instance, volumes)?;
        if points.is_empty() {
            return Ok(false);
        }
        let mut python = Command::new("python3");
        python.args(["-c", SHUTDOWN]).args(&points);
        match tool::run(&mut python) {
            Err(_) if tries.next().is_some() => {}
            done => {
                return done
                    .map(|_| true)
                    .with_context(|| format!("cutting off the file systems at {points:?}"));
            }
        }
    }
}

/// Where a device is mounted in the host's namespaces, as paths the machine can open.
fn mount_points_in_host(place: &LabPaths, instance: &str, device: &str) -> Result<Vec<PathBuf>> {
    let mut seen = BTreeSet::new();
    let mut points = Vec::new();
    for pid in cgroup::pids_in_cgroup(&place.host_cgroup(instance))? {
        let Ok(namespace) = fs::read_link(format!("/proc/{pid}/ns/mnt")) else {
            continue; // The process ended meanwhile.
        };
        if !seen.insert(namespace) || process::namespace_pids(pid)?.len() < 2 {
            continue;
        }
        for mount in mounts::read_mounts(&pid.to_string())?
            .into_iter()
            .filter(|mount| mount.device == device)
        {
            let inside = mount
                .point
                .strip_prefix("/")
                .unwrap_or(&mount.point)
                .to_owned();
            points.push(PathBuf::from(format!("/proc/{pid}/root")).join(inside));
        }
    }
    Ok(points)
}

/// Takes all volumes from a host whose processes are gone.
pub(super) fn release_all(place: &LabPaths, host: &Host) -> Result<()> {
    let ledger = Ledger::open(place).context("opening the ledger")?;
    let _lock = lock_attachments(place)?;
    for attached in host.read_volumes(place)? {
        teardown::release_device(
            &ledger,
            &volume_file(place, &attached.volume),
            &attached.loop_device,
        )?;
    }
    let volumes = HostPaths::for_host(place, &host.spec.instance).volumes_file();
    Ok(json_file::write_json(&volumes, &Vec::<HostVolume>::new())?)
}
