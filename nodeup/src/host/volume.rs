//! File systems on further volumes: formatted only if provably blank, then mounted.

use super::disk::{Disk, invalid, io_failure};
use super::kernel::mounts;
use super::system::{Answer, MountRequest, System};
use model::engine::{Class, Failure};
use model::host::Mount;
use std::fs::{self, File};
use std::io::{self, Read};

/// Volumes whose formatting began in this boot, with what tells each from others: they were blank, and one that was
/// interrupted is neither blank nor whole.
const FORMATTING: &str = "/run/kctl/formatting";

/// How much of a volume must be zero.
const BLANK: u64 = 1 << 20;

/// What a mount unit's drop-in folder has of ours.
const DROP_IN: &str = "device.conf";

pub(super) fn observe(
    disk: &Disk,
    system: &dyn System,
    want: &Mount,
) -> Result<Option<Mount>, Failure> {
    let mounts = mounts(disk)?;
    let Some(mounted) = mounts.iter().rfind(|mounted| mounted.path == want.path) else {
        return Ok(None);
    };
    let path = drop_in(want);
    let kept = disk.read(&path).map_err(io_failure("reading", &path))?;
    let uuid = uuid(disk, system, &mounted.source)?;
    let by_uuid = uuid.is_some_and(|uuid| kept.as_deref() == Some(drop_in_text(&uuid).as_bytes()));
    let mut have = Mount {
        by_uuid,
        ..want.clone()
    };
    // At each boot the device may have another name; the file system is still the same one.
    if !by_uuid {
        let wanted = find(disk, system, &want.device)?;
        if !wanted.is_some_and(|wanted| same_device(disk, &mounted.source, &wanted)) {
            have.device.clone_from(&mounted.source);
        }
    }
    Ok(Some(have))
}

/// Devices have several names.
fn same_device(disk: &Disk, one: &str, other: &str) -> bool {
    let resolved = |path: &str| fs::canonicalize(disk.at(path)).ok();
    one == other || resolved(one).is_some_and(|one| resolved(other) == Some(one))
}

/// The device that the spec means: the NVMe disk that AWS attached under that name, else what has the name itself. NVMe
/// disks are numbered anew at each boot: by a number it may be another one, etcd's or a pod's.
fn find(disk: &Disk, system: &dyn System, name: &str) -> Result<Option<String>, Failure> {
    if !name.starts_with("/dev/nvme") {
        for device in nvme_disks(disk)? {
            let given = system.attached_as(&disk.at(&device));
            let given = given.map_err(io_failure("asking", &device))?;
            if given.is_some_and(|given| attached_name(&given) == attached_name(name)) {
                return Ok(Some(device));
            }
        }
    }
    Ok(disk.at(name).exists().then(|| name.to_owned()))
}

/// Devices of the NVMe disks that the kernel shows.
fn nvme_disks(disk: &Disk) -> Result<Vec<String>, Failure> {
    let path = "/sys/block";
    let entries = match fs::read_dir(disk.at(path)) {
        Ok(entries) => entries.collect::<io::Result<Vec<_>>>(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    let names = entries.map_err(io_failure("reading", path))?.into_iter();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut devices: Vec<String> = names
        .filter(|name| name.starts_with("nvme"))
        .map(|name| format!("/dev/{name}"))
        .filter(|device| disk.at(device).exists())
        .collect();
    devices.sort();
    Ok(devices)
}

/// AWS takes `/dev/sdf` and `/dev/xvdf`, and tells EBS' disks of it with `/dev/` or without.
fn attached_name(name: &str) -> String {
    let bare = name.trim_start_matches("/dev/");
    let rest = bare.strip_prefix("xvd").or_else(|| bare.strip_prefix("sd"));
    rest.unwrap_or(bare).to_owned()
}

pub(super) fn put(
    disk: &Disk,
    system: &dyn System,
    want: &Mount,
    have: Option<&Mount>,
) -> Result<(), Failure> {
    let call = format!("mounting {} at {}", want.device, want.path);
    if let Some(have) = have.filter(|have| have.device != want.device) {
        let message = format!(
            "{} is mounted there: unmount it, or change volumeMounts",
            have.device
        );
        return Err(invalid(&call, &message));
    }
    let Some(device) = find(disk, system, &want.device)? else {
        return Err(Failure {
            class: Class::NotYet,
            hint: Some(
                "volumes of spec.volumes are found by their device there: is it attached? lsblk shows what is".to_owned(),
            ),
            ..invalid(&call, "there is no such device")
        });
    };
    let failed = |error: io::Error| invalid(&call, &error.to_string());
    if have.is_none() {
        if needs_format(disk, system, want, &device)? {
            format(disk, system, want, &device)?;
        }
        disk.folder(&disk.at(&want.path), 0o755).map_err(failed)?;
        disk.may_change().map_err(failed)?;
        let mounted = system.mount(&MountRequest {
            device: disk.at(&device).display().to_string(),
            path: disk.at(&want.path).display().to_string(),
            filesystem: want.filesystem.clone(),
            options: want.mount_options.join(","),
        });
        mounted.map_err(failed)?;
        disk.forget(&record(want)).map_err(failed)?;
    }
    let Some(uuid) = uuid(disk, system, &device)? else {
        return Err(invalid(&call, "its file system has no UUID"));
    };
    let text = drop_in_text(&uuid);
    disk.write(&drop_in(want), text.as_bytes(), 0o644, "root:root")
        .map_err(failed)
}

/// Where the unit learns which file system it mounts (systemd.unit(5), "drop-in").
fn drop_in(want: &Mount) -> String {
    format!("/etc/systemd/system/{}.d/{DROP_IN}", want.unit)
}

fn drop_in_text(uuid: &str) -> String {
    format!("[Mount]\nWhat=/dev/disk/by-uuid/{uuid}\n")
}

/// The UUID of the file system on a device; `None` if there is none.
fn uuid(disk: &Disk, system: &dyn System, device: &str) -> Result<Option<String>, Failure> {
    let answer = probe(disk, system, "UUID", device)?;
    let found = answer.out.trim();
    Ok((answer.code == 0 && !found.is_empty()).then(|| found.to_owned()))
}

fn probe(disk: &Disk, system: &dyn System, tag: &str, device: &str) -> Result<Answer, Failure> {
    let path = disk.at(device).display().to_string();
    let words = ["--probe", "--match-tag", tag, "--output", "value", &path];
    let answer = system.run("blkid", &words);
    answer.map_err(|error| invalid(&format!("looking at {device}"), &error.to_string()))
}

/// What tells a disk from any other in this boot: its serial number, of EBS' the volume's id; else the number that the
/// kernel gave this very attachment (Documentation/ABI/stable/sysfs-block, `diskseq`).
fn identity(disk: &Disk, device: &str) -> Option<String> {
    let real = fs::canonicalize(disk.at(device)).ok()?;
    let name = real.file_name()?.to_str()?;
    ["device/serial", "diskseq"].into_iter().find_map(|about| {
        let text = disk.text(&format!("/sys/block/{name}/{about}")).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| format!("{about} {text}"))
    })
}

/// Whether the volume is blank; false if it has the file system already. Everything else is an error: it is somebody's.
fn needs_format(
    disk: &Disk,
    system: &dyn System,
    want: &Mount,
    device: &str,
) -> Result<bool, Failure> {
    let call = format!("looking at {}", want.device);
    let record = record(want);
    let began = disk.read(&record).map_err(io_failure("reading", &record))?;
    // Of another disk that has the name now it says nothing.
    let began = began
        .is_some_and(|began| identity(disk, device).is_some_and(|one| one.as_bytes() == began));
    let answer = probe(disk, system, "TYPE", device)?;
    let found = answer.out.trim();
    if answer.code == 0 && found == want.filesystem {
        return Ok(false);
    }
    if began {
        return Ok(true);
    }
    // 2: nothing was found. Anything else may be a file system that it could not read.
    let blank = answer.code == 2 && found.is_empty();
    if blank && zeros(&disk.at(device)).map_err(|error| invalid(&call, &error.to_string()))? {
        return Ok(true);
    }
    let what = if found.is_empty() {
        "data".to_owned()
    } else {
        found.to_owned()
    };
    let mut failure = invalid(
        &call,
        &format!("it is not blank and not {}: it has {what}", want.filesystem),
    );
    failure.hint = Some(
        "a volume is formatted only if it is blank: wipe it by hand if nobody needs what is on it"
            .to_owned(),
    );
    Err(failure)
}

fn zeros(device: &std::path::Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(device)?.take(BLANK).read_to_end(&mut start)?;
    Ok(start.iter().all(|byte| *byte == 0))
}

fn format(disk: &Disk, system: &dyn System, want: &Mount, device: &str) -> Result<(), Failure> {
    let call = format!("formatting {}", want.device);
    let failed = |error: io::Error| invalid(&call, &error.to_string());
    let record = record(want);
    if let Some(identity) = identity(disk, device) {
        disk.write(&record, identity.as_bytes(), 0o644, "root:root")
            .map_err(failed)?;
    }
    disk.may_change().map_err(failed)?;
    let program = format!("mkfs.{}", want.filesystem);
    let device = disk.at(device).display().to_string();
    let mut arguments: Vec<&str> = want.format_options.iter().map(String::as_str).collect();
    arguments.push(&device);
    let answer = match system.run(&program, &arguments) {
        Ok(answer) => answer,
        Err(error) => {
            // It never began: whoever comes next looks for blank again.
            disk.forget(&record).map_err(failed)?;
            return Err(failed(error));
        }
    };
    if answer.code == 0 {
        return Ok(());
    }
    Err(invalid(
        &call,
        &format!("{program} said {}", answer.err.trim()),
    ))
}

fn record(want: &Mount) -> String {
    format!(
        "{FORMATTING}/{}",
        want.device.trim_start_matches('/').replace('/', "-")
    )
}
