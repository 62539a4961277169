//! File systems on further volumes: formatted only if provably blank, then mounted.

use super::disk::{Disk, invalid, io_failure};
use super::kernel::mounts;
use super::system::{MountRequest, System};
use model::engine::{Class, Failure};
use model::host::Mount;
use std::fs::{self, File};
use std::io::{self, Read};

/// Volumes whose formatting began in this boot: they were blank, and one that was interrupted is neither blank nor whole.
const FORMATTING: &str = "/run/kctl/formatting";

/// How much of a volume must be zero.
const BLANK: u64 = 1 << 20;

pub(super) fn observe(disk: &Disk, want: &Mount) -> Result<Option<Mount>, Failure> {
    let mounts = mounts(disk)?;
    let Some(mounted) = mounts.iter().rfind(|mounted| mounted.path == want.path) else {
        return Ok(None);
    };
    let mut have = want.clone();
    if !same_device(disk, &mounted.source, &want.device) {
        have.device.clone_from(&mounted.source);
    }
    Ok(Some(have))
}

/// Devices have several names.
fn same_device(disk: &Disk, one: &str, other: &str) -> bool {
    let resolved = |path: &str| fs::canonicalize(disk.at(path)).ok();
    one == other || resolved(one).is_some_and(|one| resolved(other) == Some(one))
}

pub(super) fn put(
    disk: &Disk,
    system: &dyn System,
    want: &Mount,
    have: Option<&Mount>,
) -> Result<(), Failure> {
    let call = format!("mounting {} at {}", want.device, want.path);
    if let Some(have) = have {
        let message = format!(
            "{} is mounted there: unmount it, or change volumeMounts",
            have.device
        );
        return Err(invalid(&call, &message));
    }
    if !disk.at(&want.device).exists() {
        return Err(Failure {
            class: Class::NotYet,
            hint: Some(
                "machines of the Nitro kind call volumes /dev/nvme1n1 and so on: see lsblk"
                    .to_owned(),
            ),
            ..invalid(&call, "there is no such device")
        });
    }
    if needs_format(disk, system, want)? {
        format(disk, system, want)?;
    }
    let failed = |error: io::Error| invalid(&call, &error.to_string());
    disk.folder(&disk.at(&want.path), 0o755).map_err(failed)?;
    disk.may_change().map_err(failed)?;
    let mounted = system.mount(&MountRequest {
        device: disk.at(&want.device).display().to_string(),
        path: disk.at(&want.path).display().to_string(),
        filesystem: want.filesystem.clone(),
        options: want.mount_options.join(","),
    });
    mounted.map_err(failed)?;
    disk.forget(&record(want)).map_err(failed)
}

/// Whether the volume is blank; false if it has the file system already. Everything else is an error: it is somebody's.
fn needs_format(disk: &Disk, system: &dyn System, want: &Mount) -> Result<bool, Failure> {
    let device = disk.at(&want.device);
    let call = format!("looking at {}", want.device);
    let began = disk
        .about(&record(want))
        .map_err(io_failure("reading", &record(want)))?;
    let path = device.display().to_string();
    let answer = system.run(
        "blkid",
        &["--probe", "--match-tag", "TYPE", "--output", "value", &path],
    );
    let answer = answer.map_err(|error| invalid(&call, &error.to_string()))?;
    let found = answer.out.trim();
    if answer.code == 0 && found == want.filesystem {
        return Ok(false);
    }
    if began.is_some() {
        return Ok(true);
    }
    // 2: nothing was found. Anything else may be a file system that it could not read.
    let blank = answer.code == 2 && found.is_empty();
    if blank && zeros(&device).map_err(|error| invalid(&call, &error.to_string()))? {
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

fn format(disk: &Disk, system: &dyn System, want: &Mount) -> Result<(), Failure> {
    let call = format!("formatting {}", want.device);
    let failed = |error: io::Error| invalid(&call, &error.to_string());
    disk.write(
        &record(want),
        want.filesystem.as_bytes(),
        0o644,
        "root:root",
    )
    .map_err(failed)?;
    disk.may_change().map_err(failed)?;
    let program = format!("mkfs.{}", want.filesystem);
    let device = disk.at(&want.device).display().to_string();
    let mut arguments: Vec<&str> = want.format_options.iter().map(String::as_str).collect();
    arguments.push(&device);
    let answer = system.run(&program, &arguments).map_err(failed)?;
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
