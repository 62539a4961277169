//! Disks of virtual machines: NVMe controllers with the serial numbers that EBS' have, plugged and unplugged while a machine runs.

use super::super::state::{Host, HostPaths};
use super::super::volume::HostVolume;
use super::agent::run_program;
use super::image::MachineImage;
use super::json_socket::JsonSocket;
use super::qemu::{disk_backend, disk_device};
use crate::lab_paths::LabPaths;
use crate::ledger::{Ledger, LedgerEntry};
use crate::tool;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a machine's kernel may take to let go of a disk that is pulled.
const LET_GO: Duration = Duration::from_mins(2);

const PAUSE: Duration = Duration::from_millis(500);

/// Exit code of [`CLAIM`]: a file system or another user has the disk.
const BUSY: i32 = 16;

/// Claims the disk with this serial number, as mounting it does.
const CLAIM: &str = "\
import errno, glob, os, sys
for path in glob.glob('/sys/block/nvme*/device/serial'):
    if open(path).read().strip() == sys.argv[1]:
        try:
            os.open('/dev/' + path.split('/')[3], os.O_RDONLY | os.O_EXCL)
        except OSError as error:
            sys.exit(16 if error.errno == errno.EBUSY else str(error))
";

/// Makes a machine's root disk, a copy of the image's and as sparse.
pub(in super::super) fn copy_root_disk(
    ledger: &Ledger,
    paths: &HostPaths,
    image: &MachineImage,
) -> Result<()> {
    for folder in [&paths.run, &paths.data] {
        ledger.record(&LedgerEntry::Directory {
            path: folder.clone(),
        })?;
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    let mut copy = ledger.locked_command("cp")?;
    copy.arg("--sparse=always")
        .args([image.root_disk(), paths.disk_image()]);
    tool::run(&mut copy).map(drop)
}

/// Plugs a volume into a machine that is on; one that it has already stays.
pub(in super::super) fn plug_volume(
    place: &LabPaths,
    instance: &str,
    volume: &HostVolume,
) -> Result<()> {
    let socket = HostPaths::for_host(place, instance).monitor_socket();
    let mut monitor = JsonSocket::connect_monitor(&socket)?;
    if has_device(&mut monitor, &volume.volume)? {
        return Ok(());
    }
    // Of an attachment that was cut off, if there was one.
    let _ = monitor.ask("blockdev-del", &json!({"node-name": volume.volume}));
    monitor.ask("blockdev-add", &disk_backend(volume))?;
    monitor.ask("device_add", &disk_device(volume)).map(drop)
}

/// Pulls a volume out of a machine, by force also while it is in use there; false if it is.
pub(in super::super) fn unplug_volume(
    place: &LabPaths,
    host: &Host,
    volume: &HostVolume,
    force: bool,
) -> Result<bool> {
    // At the next boot it is not plugged in.
    if host.end_state(place)?.is_some() {
        return Ok(true);
    }
    let instance = &host.spec.instance;
    if !force && is_in_use(place, instance, volume)? {
        return Ok(false);
    }
    let socket = HostPaths::for_host(place, instance).monitor_socket();
    let mut monitor = JsonSocket::connect_monitor(&socket)?;
    let (id, end) = (&volume.volume, Instant::now() + LET_GO);
    loop {
        // Each is refused until what comes before it is done: a request, the kernel's answer, and the end of the device.
        let _ = monitor.ask("device_del", &json!({"id": id}));
        let _ = monitor.ask("blockdev-del", &json!({"node-name": id}));
        if !is_open(&mut monitor, id)? {
            return Ok(true);
        }
        if Instant::now() > end {
            bail!("the kernel of {instance} does not let go of {id} within {LET_GO:?}");
        }
        sleep(PAUSE);
    }
}

fn is_in_use(place: &LabPaths, instance: &str, volume: &HostVolume) -> Result<bool> {
    let serial = volume.serial();
    let output = run_program(place, instance, &["python3", "-c", CLAIM, &serial])?;
    match output.status.code() {
        Some(0) => Ok(false),
        Some(BUSY) => Ok(true),
        _ => bail!(
            "looking whether {instance} uses {}: {}",
            volume.volume,
            String::from_utf8_lossy(&output.stderr).trim()
        ),
    }
}

/// Whether a machine has the device with this id.
fn has_device(monitor: &mut JsonSocket, id: &str) -> Result<bool> {
    let devices = monitor.ask("qom-list", &json!({"path": "/machine/peripheral"}))?;
    Ok(is_listed(&devices, "name", id))
}

/// Whether QEMU has a volume open.
fn is_open(monitor: &mut JsonSocket, id: &str) -> Result<bool> {
    let nodes = monitor.ask("query-named-block-nodes", &json!({"flat": true}))?;
    Ok(is_listed(&nodes, "node-name", id))
}

fn is_listed(all: &Value, key: &str, id: &str) -> bool {
    let named = |one: &Value| one.get(key).is_some_and(|name| name == id);
    all.as_array().is_some_and(|all| all.iter().any(named))
}
